/** Forms of pages, as a browser without JavaScript reads and sends them; and records that are made with them. */
import { expect } from 'vitest'
import { operations } from '../../generated/operations.ts'
import { type Resource, resources } from '../../generated/resources.ts'
import type { Client, TestAccount, TestApp } from '../helpers.ts'
import { newTenant, type Tenant } from '../webhooks/harness.ts'
import { type ConsoleAnswer, type Visitor, visitor } from './visitors.ts'

export interface PageForm {
  /** Below /console. */
  to: string
  /** What would be sent, as it stands. */
  fields: [name: string, value: string][]
}

/** The form of a page that changes something: the last that is no button by itself. Throws when there is none. */
export function formOf(page: string): PageForm {
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
    if (tag === 'textarea') fields.push([name, unescaped(inner).replace(/^\n/, '')])
    else if (tag === 'select')
      fields.push(...selected(own, inner).map((value): [string, string] => [name, value]))
    else if (!/^(checkbox|radio)$/.test(attributeOf(own, 'type') ?? '') || / checked/.test(own))
      fields.push([name, attributeOf(own, 'value') ?? ''])
  }
  return {
    to: unescaped(attributeOf(attributes, 'action') ?? '').replace(/^\/console/, ''),
    fields,
  }
}

/** By the name of the field: a list is a field several times, and undefined leaves it out. */
export type Values = Record<string, string | string[] | undefined>

/** What a form sends with some of its fields filled in. */
export function filledIn({ fields }: PageForm, values: Values): Record<string, string | string[]> {
  const all: Record<string, string | string[]> = {}
  for (const [name, value] of fields)
    all[name] = name in all ? [all[name] ?? [], value].flat() : value
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) delete all[name]
    else all[name] = value
  }
  return all
}

/** What a page says is wrong, by field: of `full_name`, its sentences. */
export function errorsIn(page: string): Record<string, string> {
  const said = [
    ...page.matchAll(/<p class="field-error"(?: id="field-([\w-]+)-error")?>([\s\S]*?)<\/p>/g),
  ]
  return Object.fromEntries(said.map(([, id = '', text = '']) => [id, unescaped(text)]))
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
  return text === undefined ? undefined : unescaped(text)
}

/** As web/shared/html.ts escapes. */
export function unescaped(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
}

/** The Owner of an account, in the console and by the API. */
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

/** Opens the page of a form, fills in some of it and sends it. */
export async function fill(visits: Visitor, path: string, values: Values): Promise<ConsoleAnswer> {
  const page = await visits.get(path)
  expect([path, page.status]).toEqual([path, 200])
  const form = formOf(page.text)
  return visits.post(form.to, filledIn(form, values))
}

/** Makes a record with the form at `/records/…`, and gives its id. */
export async function madeBy(visits: Visitor, path: string, values: Values): Promise<string> {
  const answer = await fill(visits, path, values)
  expect(errorsIn(answer.text)).toEqual({})
  expect(answer).toMatchObject({
    status: 303,
    to: expect.stringMatching(/^\/records\/[a-z-]+\/[0-9a-f-]{36}$/),
  })
  return answer.to?.split('/').at(-1) ?? ''
}

/** Of a page, what is to be read on it. */
export function textOf(page: string): string {
  return unescaped(
    (/<main[\s\S]*<\/main>/.exec(page)?.[0] ?? page).replace(/<[^>]+>/g, ' '),
  ).replace(/\s+/g, ' ')
}

/** The ids of the records in a list, in their order. */
export function idsIn(page: string, slug: string): string[] {
  return [
    ...page.matchAll(
      new RegExp(`<tr><td[^>]*><a href="/console/records/${slug}/([0-9a-f-]{36})"`, 'g'),
    ),
  ].map(([, id]) => id ?? '')
}

export function resourceOf(slug: string): Resource {
  const resource = resources.find((one) => one.slug === slug)
  if (!resource) throw new Error(`No resource ${slug}`)
  return resource
}

/** Of its list, below `/public/v1`. */
export function apiPath({ operations: { list } }: Resource): string {
  return operations[list].path.replace('/public/v1', '')
}
