/** Reads pages of the console, and submits their forms as a browser without JavaScript does. */
import { expect } from 'vitest'
import { operations } from '../../generated/operations.ts'
import { type Resource, resources } from '../../generated/resources.ts'
import type { Client, TestAccount, TestApp } from '../helpers.ts'
import { newTenant, type Tenant } from '../webhooks/harness.ts'
import { type ConsoleAnswer, type Visitor, visitor } from './visitors.ts'

export interface PageForm {
  /** The URL that it posts to, below /console. */
  to: string
  /** What it submits when nothing is changed. */
  fields: [name: string, value: string][]
}

/** The last form of a page, which saves its changes. Throws if there is none. */
export function mainForm(page: string): PageForm {
  const main = /<main[\s\S]*<\/main>/.exec(page)?.[0] ?? ''
  const [form, attributes = ''] = [...main.matchAll(/<form([^>]*)>[\s\S]*?<\/form>/g)].at(-1) ?? []
  if (form === undefined)
    throw new Error(`No form on the page ${/<h1>(.*?)<\/h1>/.exec(page)?.[1]}`)
  const fields: PageForm['fields'] = []
  for (const found of form.matchAll(
    /<input\b((?:[^>"]|"[^"]*")*)>|<(select|textarea)\b((?:[^>"]|"[^"]*")*)>([\s\S]*?)<\/\2>/g,
  )) {
    const [, ofInput, tag, ofOther = '', inner = ''] = found
    const own = ofInput ?? ofOther
    const name = attributeOf(own, 'name')
    if (name === undefined) continue
    if (tag === 'textarea') fields.push([name, unescapeHtml(inner).replace(/^\n/, '')])
    else if (tag === 'select')
      fields.push(...selected(own, inner).map((value): [string, string] => [name, value]))
    else if (!/^(checkbox|radio)$/.test(attributeOf(own, 'type') ?? '') || / checked/.test(own))
      fields.push([name, attributeOf(own, 'value') ?? ''])
  }
  return {
    to: unescapeHtml(attributeOf(attributes, 'action') ?? '').replace(/^\/console/, ''),
    fields,
  }
}

/** By field name. A list sends its field several times; undefined omits it. */
export type Values = Record<string, string | string[] | undefined>

/** What the form submits with these values. */
export function withValues(
  { fields }: PageForm,
  values: Values,
): Record<string, string | string[]> {
  const all: Record<string, string | string[]> = {}
  for (const [name, value] of fields)
    all[name] = name in all ? [all[name] ?? [], value].flat() : value
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) delete all[name]
    else all[name] = value
  }
  return all
}

/** The error message of each field, by its ID without the prefix. */
export function fieldErrors(page: string): Record<string, string> {
  const messages = [
    ...page.matchAll(/<p class="field-error"(?: id="field-([\w-]+)-error")?>([\s\S]*?)<\/p>/g),
  ]
  return Object.fromEntries(messages.map(([, id = '', text = '']) => [id, unescapeHtml(text)]))
}

function selected(own: string, inner: string): string[] {
  const options = [...inner.matchAll(/<option\b((?:[^>"]|"[^"]*")*)>/g)].map(
    ([, attributes = '']) => attributes,
  )
  const chosen = options.filter((attributes) => / selected/.test(attributes))
  const sent = / multiple/.test(own) || chosen.length > 0 ? chosen : options.slice(0, 1)
  return sent.map((attributes) => attributeOf(attributes, 'value') ?? '')
}

function attributeOf(attributes: string, name: string): string | undefined {
  const text = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1]
  return text === undefined ? undefined : unescapeHtml(text)
}

/** The opposite of `escapeHtml`. */
export function unescapeHtml(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
}

/** The Owner of an account, with access to the console and the API. */
export interface Owner {
  account: TestAccount
  tenant: Tenant
  client: Client
  visits: Visitor
}

export async function newOwner(app: TestApp): Promise<Owner> {
  const tenant = await newTenant(app)
  const { id: userId } = await tenant.scope.rows('users').first('id')
  const person = { accountId: tenant.accountId, userId }
  const account = { ...person, key: await app.newKey(person) }
  return { account, tenant, client: app.as(account), visits: await visitor(app, account) }
}

/** Opens the page of a form and submits it with these values. */
export async function submitForm(
  visits: Visitor,
  path: string,
  values: Values,
): Promise<ConsoleAnswer> {
  const page = await visits.get(path)
  expect([path, page.status]).toEqual([path, 200])
  const form = mainForm(page.text)
  return visits.post(form.to, withValues(form, values))
}

/** Creates a record with the form at `path`. Returns its ID. */
export async function createByForm(visits: Visitor, path: string, values: Values): Promise<string> {
  const answer = await submitForm(visits, path, values)
  expect(fieldErrors(answer.text)).toEqual({})
  expect(answer).toMatchObject({
    status: 303,
    to: expect.stringMatching(/^\/records\/[a-z-]+\/[0-9a-f-]{36}$/),
  })
  return answer.to?.split('/').at(-1) ?? ''
}

/** The text of the main part of a page. */
export function mainText(page: string): string {
  return unescapeHtml(
    (/<main[\s\S]*<\/main>/.exec(page)?.[0] ?? page).replace(/<[^>]+>/g, ' '),
  ).replace(/\s+/g, ' ')
}

/** The IDs of the records in a list, in its order. */
export function listedIds(page: string, slug: string): string[] {
  return [
    ...page.matchAll(
      new RegExp(`<tr><td[^>]*><a href="/console/records/${slug}/([0-9a-f-]{36})"`, 'g'),
    ),
  ].map(([, id]) => id ?? '')
}

export function resourceBySlug(slug: string): Resource {
  const resource = resources.find((one) => one.slug === slug)
  if (!resource) throw new Error(`No resource ${slug}`)
  return resource
}

/** The path of the resource's list, below `/public/v1`. */
export function apiPath({ operations: { list } }: Resource): string {
  return operations[list].path.replace('/public/v1', '')
}
