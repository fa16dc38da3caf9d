/** Records that other records refer to: their names, and how to find them. */

import { validate as isUuid } from 'uuid'
import { StatusError } from '../../../errors.ts'
import { operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import type { Visit } from '../page.ts'
import { shortId } from '../ui.ts'
import {
  addressOf,
  type Item,
  maySee,
  nameField,
  recordFields,
  referencedResource,
} from './resources.ts'

/** The records that were found, by `participant 0193…`. Only those that the user may see. */
export type KnownRecords = Map<string, { resource: Resource; item: Item }>

/** So many at once: a page must not take all of the connections. */
const MAX_CONCURRENT_LOOKUPS = 8

const keyOf = (resource: Resource, id: string): string => `${resource.type} ${id.toLowerCase()}`

/** One record, or undefined where there is none. */
export async function findRecord(
  visit: Visit,
  { type, operations: { get } }: Resource,
  id: string,
): Promise<Item | undefined> {
  try {
    return (await visit.call(get, { path: { [type]: id } })) as Item
  } catch (error) {
    if (error instanceof StatusError && error.status === 404) return undefined
    throw error
  }
}

/** What the fields of these records refer to. */
export async function loadReferences(
  visit: Visit,
  items: Record<string, unknown>[],
): Promise<KnownRecords> {
  const wanted = new Map<string, { resource: Resource; id: string }>()
  for (const [name, id] of items.flatMap((item) => Object.entries(item))) {
    const resource = referencedResource(name)
    if (resource && typeof id === 'string' && isUuid(id) && maySee(visit.user, resource))
      wanted.set(keyOf(resource, id), { resource, id })
  }
  const known: KnownRecords = new Map()
  const waiting = [...wanted]
  while (waiting.length > 0) {
    await Promise.all(
      waiting.splice(0, MAX_CONCURRENT_LOOKUPS).map(async ([key, { resource, id }]) => {
        const item = await findRecord(visit, resource, id)
        if (item) known.set(key, { resource, item })
      }),
    )
  }
  return known
}

export function findKnownRecord(known: KnownRecords, name: string, id: string): Item | undefined {
  const resource = referencedResource(name)
  return resource && known.get(keyOf(resource, id))?.item
}

/** The name of what a field refers to, as a link; its id where it has none, or is not to be seen. */
export function referenceLink(known: KnownRecords, name: string, id: string): Html {
  const resource = referencedResource(name)
  const item = findKnownRecord(known, name, id)
  if (!resource || !item) return html`<code title="${id}">${shortId(id)}</code>`
  return html`<a href="/console${addressOf(resource, id)}">${recordName(resource, item) ?? html`<code>${shortId(id)}</code>`}</a>`
}

/** Undefined where records have no name. */
export function recordName(resource: Resource, item: Item): string | undefined {
  const field = nameField(resource)
  return field === undefined ? undefined : String(item[field])
}

export interface SearchResult {
  resource: Resource
  items: Item[]
  /** That match, of which `items` are the first. */
  total: number
}

const MAX_CHOICES = 8
const UNSEARCHABLE_PAGE_SIZE = 100

/** Records whose name holds the text, or the newest. `others` are the references beside it: a task for a payment is one of its participant. */
export async function searchRecords(
  visit: Visit,
  resource: Resource,
  text: string,
  others: Record<string, string>,
): Promise<SearchResult> {
  const { list } = resource.operations
  const { filters, sorts } = operations[list] as { filters: object; sorts: readonly string[] }
  const related = Object.entries(others).filter(([name, id]) => name in filters && isUuid(id))
  const canSearch = 'search' in filters
  const query = {
    ...Object.fromEntries(related.map(([name, id]) => [`filter[${name}]`, id])),
    ...(canSearch && text !== '' && { 'filter[search]': [...text].slice(0, 200).join('') }),
    ...(sorts.includes('created_at') && { sort: ['-created_at'] }),
    'page[size]': canSearch ? MAX_CHOICES : UNSEARCHABLE_PAGE_SIZE,
  }
  const { data, meta } = (await visit.call(list, { query })) as {
    data: Item[]
    meta: { total: number }
  }
  if (canSearch) return { resource, items: data, total: meta.total }
  const matching = data.filter((item) =>
    (recordName(resource, item) ?? item.id).toLowerCase().includes(text.toLowerCase()),
  )
  return { resource, items: matching.slice(0, MAX_CHOICES), total: matching.length }
}

/** What tells two of the same name apart: the first text beside it. */
export function distinguishingText(resource: Resource, item: Item): Content {
  const name = nameField(resource)
  const isText = (schema: Schema): boolean =>
    schema.type === 'string' && !schema.format && !schema.enum
  const value = recordFields(resource)
    .filter(([other, schema]) => other !== name && isText(schema))
    .map(([other]) => item[other])
    .find((other) => typeof other === 'string' && other !== '')
  return value === undefined ? shortId(item.id) : String(value)
}
