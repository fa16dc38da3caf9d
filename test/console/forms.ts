/** Reads pages of the console, and submits their forms as a browser without JavaScript does. */
import { expect } from 'vitest'
import type { ConsoleAnswer, Visitor } from './visitors.ts'

/** The opposite of `escapeHtml`. */
export function unescapeHtml(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
}

/** The text of the main part of a page, on one line. */
export function mainText(page: string): string {
  const main = mainPart(page) ?? page
  return unescapeHtml(main.replace(/<[^>]+>/g, ' ')).replace(/\s+/g, ' ')
}

function mainPart(page: string): string | undefined {
  return /<main[\s\S]*<\/main>/.exec(page)?.[0]
}

/** The text of a piece of HTML, with its line breaks. */
export function plainText(html: string): string {
  return unescapeHtml(html.replace(/<[^>]*>/g, ''))
    .replaceAll('\u00a0', ' ')
    .trim()
}

/** The path of the link with this text, below /console. Undefined if there is none. */
export function pathOfLink(page: string, label: string): string | undefined {
  for (const [, href = '', text] of page.matchAll(/<a\b[^>]*href="([^"]*)"[^>]*>([^<]*)<\/a>/g))
    if (text === label) return unescapeHtml(href).replace(/^\/console/, '')
  return undefined
}

/** The text of a code block by its label. Empty if there is none. */
export function blockIn(page: string, label: string): string {
  const block = new RegExp(`<pre[^>]*aria-label="${label}"><code>([\\s\\S]*?)</code>`).exec(page)
  return unescapeHtml((block?.[1] ?? '').replace(/<[^>]*>/g, ''))
}

/** The figures of a page by label. */
export function figuresOf(page: string): Record<string, string> {
  const stats = page.matchAll(/<dt>(.*?)<\/dt>\s*<dd class="stat-value">(.*?)<\/dd>/g)
  return Object.fromEntries(
    [...stats].map(([, label = '', value = '']) => [plainText(label), plainText(value)]),
  )
}

/** The cells of a table by its label, row by row. */
export function tableOf(page: string, label: string): string[][] {
  const [, after = ''] = page.split(`role="region" aria-label="${label}"`)
  const [, body = ''] = after.slice(0, after.indexOf('</table>')).split('<tbody>')
  return [...body.matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell = '']) =>
      plainText(cell).replace(/\s+/g, ' '),
    ),
  )
}

/** The curl command that the copy button of a request copies. */
export function curlCommandIn(page: string): string {
  const [, copied = ''] =
    /data-copy="([^"]*)"\s+aria-label="Copy the curl command"/.exec(page) ?? []
  return unescapeHtml(copied)
}

/** The IDs of the listed requests, in the order of the page. */
export function requestIdsIn(page: string): string[] {
  return [...page.matchAll(/<tbody id="request-([\da-f-]{36})"/g)].map(([, id = '']) => id)
}

/** The IDs of the listed deliveries, in the order of the page. */
export function deliveryIdsIn(page: string): string[] {
  return [...page.matchAll(/<tbody id="delivery-([\w-]+)"/g)].map(([, id = '']) => id)
}

/** The IDs of the listed records of a resource, in the order of the page. */
export function recordIdsIn(page: string, slug: string): string[] {
  const rows = page.matchAll(
    new RegExp(
      `<tr>(?:<td[^>]*><input[^>]*></td>)?<td[^>]*><div[^>]*><a [^>]*href="/console/records/${slug}/([0-9a-f-]{36})"`,
      'g',
    ),
  )
  return [...rows].map(([, id = '']) => id)
}

/** The error message of each field, by the ID of the field without the prefix `field-`. */
export function fieldErrors(page: string): Record<string, string> {
  const messages = [
    ...page.matchAll(/<p class="field-error"(?: id="field-([\w-]+)-error")?>([\s\S]*?)<\/p>/g),
  ]
  return Object.fromEntries(messages.map(([, id = '', text = '']) => [id, unescapeHtml(text)]))
}

export interface PageForm {
  /** The path that the form posts to, below /console. */
  to: string
  /** What the form submits when nothing is changed. */
  fields: [name: string, value: string][]
  /** The text of its first button. */
  button: string
}

/** An input: its tag and attributes. A select or textarea: its tag, attributes and content. */
const FIELDS =
  /<(input)\b((?:[^>"]|"[^"]*")*)>|<(select|textarea)\b((?:[^>"]|"[^"]*")*)>([\s\S]*?)<\/\3>/g

/** The last form in the main part of a page: the one that saves. Throws if there is none. */
export function mainForm(page: string): PageForm {
  const form = formsIn(page).at(-1)
  if (form === undefined)
    throw new Error(`No form on the page ${/<h1>(.*?)<\/h1>/.exec(page)?.[1]}`)
  return form
}

/** The forms in the main part of a page. */
export function formsIn(page: string): PageForm[] {
  const forms = (mainPart(page) ?? '').matchAll(/<form([^>]*)>[\s\S]*?<\/form>/g)
  return [...forms].map(([form, attributes = '']) => ({
    to: unescapeHtml(attributeOf(attributes, 'action') ?? '').replace(/^\/console/, ''),
    fields: fieldsIn(form),
    button: plainText(/<button[^>]*>([\s\S]*?)<\/button>/.exec(form)?.[1] ?? ''),
  }))
}

function fieldsIn(form: string): PageForm['fields'] {
  const fields: PageForm['fields'] = []
  for (const [, input, inputAttributes, other, otherAttributes, content] of form.matchAll(FIELDS)) {
    const attributes = inputAttributes ?? otherAttributes ?? ''
    const name = attributeOf(attributes, 'name')
    if (name === undefined) continue
    for (const value of initialValues(input ?? other ?? '', attributes, content ?? ''))
      fields.push([name, value])
  }
  return fields
}

/** What a field submits when nothing is changed: no value for an unchecked box. */
function initialValues(tag: string, attributes: string, content: string): string[] {
  if (tag === 'textarea') return [unescapeHtml(content).replace(/^\n/, '')]
  if (tag === 'select') return selectedValues(attributes, content)
  const isBox = /^(checkbox|radio)$/.test(attributeOf(attributes, 'type') ?? '')
  return isBox && !/ checked/.test(attributes) ? [] : [attributeOf(attributes, 'value') ?? '']
}

/** A browser selects the first option of a single choice by itself. */
function selectedValues(attributes: string, content: string): string[] {
  const options = [...content.matchAll(/<option\b((?:[^>"]|"[^"]*")*)>/g)].map(
    ([, optionAttributes = '']) => optionAttributes,
  )
  const selected = options.filter((option) => / selected/.test(option))
  const isFirstImplied = selected.length === 0 && !/ multiple/.test(attributes)
  return (isFirstImplied ? options.slice(0, 1) : selected).map(
    (option) => attributeOf(option, 'value') ?? '',
  )
}

function attributeOf(attributes: string, name: string): string | undefined {
  const text = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1]
  return text === undefined ? undefined : unescapeHtml(text)
}

/** By field name. An array sends the field once for each item; undefined omits the field. */
export type Values = Record<string, string | string[] | undefined>

/** What the form submits with these values, and with the initial values of its other fields. */
export function withValues(
  { fields }: Partial<PageForm> & Pick<PageForm, 'fields'>,
  values: Values,
): Record<string, string | string[]> {
  const submitted: Record<string, string | string[]> = {}
  for (const [name, value] of fields)
    submitted[name] = name in submitted ? [submitted[name] ?? [], value].flat() : value
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) delete submitted[name]
    else submitted[name] = value
  }
  return submitted
}

/** Opens the page of a form and submits it with these values. */
export async function submitForm(
  visitor: Visitor,
  path: string,
  values: Values,
): Promise<ConsoleAnswer> {
  const page = await visitor.get(path)
  expect([path, page.status]).toEqual([path, 200])
  const form = mainForm(page.text)
  return visitor.post(form.to, withValues(form, values))
}
