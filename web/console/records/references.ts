/** Finds and names the records that other records refer to. */
import { validate as isUuid } from 'uuid'
import { StatusError } from '../../../errors.ts'
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { inBatches } from '../../../records/database/statements.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { capital, count } from '../format.ts'
import type { Visit } from '../page.ts'
import { shortId } from '../ui.ts'
import { amountOf } from './amounts.ts'
import { noun, option } from './labels.ts'
import {
  canViewResource,
  type Item,
  nameField,
  recordFields,
  recordLink,
  referencedResource,
} from './resources.ts'

/** Loaded records that the user can view, by type and ID: `participant 0193…`. */
export type KnownRecords = Map<string, { resource: Resource; item: Item }>

const keyOf = (resource: Resource, id: string): string => `${resource.type} ${id.toLowerCase()}`

export async function findRecord(
  visit: Visit,
  { idParameter, operations: { get } }: Resource,
  id: string,
): Promise<Item | undefined> {
  try {
    return (await visit.call(get, { path: { [idParameter]: id } })) as Item
  } catch (error) {
    if (error instanceof StatusError && error.status === 404) return undefined
    throw error
  }
}

/** Undefined also for an export or import of payments, if the user may not view payments. */
export async function findViewable(
  visit: Visit,
  resource: Resource,
  id: string,
): Promise<Item | undefined> {
  try {
    return await findRecord(visit, resource, id)
  } catch (error) {
    if (error instanceof StatusError && error.status === 403) return undefined
    throw error
  }
}

export interface Records {
  data: Item[]
  meta: { current_page: number; last_page: number; per_page: number; total: number }
}

/** Reads a page of the API's list. Throws `InvalidInput` when the query is invalid. */
export async function listRecords(
  visit: Visit,
  { operations: { list } }: Resource,
  query: Record<string, unknown>,
): Promise<Records> {
  return (await visit.call(list, { query })) as Records
}

/** The query parameter that puts the newest records first. Empty if the list cannot be sorted by
 *  creation. */
export function newestFirst({ operations: { list } }: Resource): { sort?: string[] } {
  const { sorts }: OperationRow = operations[list]
  return sorts.includes('created_at') ? { sort: ['-created_at'] } : {}
}

/** Loads the records that `items` refer to, for example in `participant_id`. */
export async function loadReferences(
  visit: Visit,
  items: Record<string, unknown>[],
): Promise<KnownRecords> {
  const wanted = new Map<Resource, Set<string>>()
  for (const [name, id] of items.flatMap((item) => Object.entries(item))) {
    const resource = referencedResource(name)
    if (resource && typeof id === 'string' && isUuid(id) && canViewResource(visit.user, resource))
      wanted.set(resource, (wanted.get(resource) ?? new Set()).add(id.toLowerCase()))
  }
  const known: KnownRecords = new Map()
  for (const [resource, ids] of wanted)
    for (const item of await findRecords(visit, resource, ids))
      known.set(keyOf(resource, item.id), { resource, item })
  return known
}

/** The API reads larger pages one at a time. */
const MAX_PAGE = 25

/** Those of the records that exist and that the user may view, in no order. */
export async function findRecords(
  visit: Visit,
  resource: Resource,
  ids: ReadonlySet<string>,
): Promise<Item[]> {
  const { filters }: OperationRow = operations[resource.operations.list]
  const items: (Item | undefined)[] = []
  if ('id' in filters)
    for (const batch of inBatches([...ids], MAX_PAGE)) {
      const query = { 'filter[id]': batch, 'page[size]': batch.length }
      items.push(...(await listRecords(visit, resource, query)).data)
    }
  else for (const id of ids) items.push(await findViewable(visit, resource, id))
  return items.filter((item) => item !== undefined)
}

/** `name`: the field that refers to the record, for example `participant_id`. */
export function findKnownRecord(known: KnownRecords, name: string, id: string): Item | undefined {
  const resource = referencedResource(name)
  return resource && known.get(keyOf(resource, id))?.item
}

/** A link with the name of the record, or with the ID of a record without a name. No link if the user
 *  may not view the record. */
export function referenceLink(known: KnownRecords, name: string, id: string): Html {
  const resource = referencedResource(name)
  const item = findKnownRecord(known, name, id)
  if (!resource || !item)
    return html`<span class="muted" title="${id}">Hidden ${resource ? noun(resource) : 'record'}</span>`
  const text = recordName(resource, item) ?? html`<code>${shortId(id)}</code>`
  return recordLink(resource, id, text)
}

/** The fields that name a record: its name, or else the fields required on creation, or else its first
 *  field. The text of an amount includes its currency. */
export function titleFields(resource: Resource): string[] {
  const name = nameField(resource)
  if (name !== undefined) return [name]
  const { creation, record } = resource
  const { id, ...properties } = record.properties ?? {}
  const fields = creation?.required ?? Object.keys(properties).slice(0, 1)
  return fields.filter((field) => !isCurrencyOfAmount(resource, field))
}

/** Whether the text of another field includes this field. */
export function isCurrencyOfAmount({ record }: Resource, field: string): boolean {
  return Object.values(record.properties ?? {}).some((other) => other['x-currency'] === field)
}

/** `Ada Lovelace, €125.00` for a payment. The short ID if the fields are empty. */
export function recordTitle(
  resource: Resource,
  item: Item,
  known: KnownRecords,
  fields = titleFields(resource),
): string {
  const parts = fields.map((field) => titlePart(resource, field, item, known))
  return parts.filter(Boolean).join(', ') || shortId(item.id)
}

function titlePart(
  { record: { properties = {} } }: Resource,
  field: string,
  item: Item,
  known: KnownRecords,
): string | undefined {
  const value = item[field]
  const referenced = referencedResource(field)
  const target = typeof value === 'string' ? findKnownRecord(known, field, value) : undefined
  if (referenced) return (target && recordName(referenced, target)) ?? capital(noun(referenced))
  const schema = properties[field] ?? {}
  const amount = amountOf(schema, value, item)
  if (amount !== undefined) return amount
  if (schema.enum) return option(value, schema)
  return typeof value === 'number' ? count(value) : String(value ?? '')
}

/** Undefined if the resource has no name field. */
export function recordName(resource: Resource, item: Item): string | undefined {
  const field = nameField(resource)
  return field === undefined ? undefined : String(item[field])
}

export interface SearchResult {
  resource: Resource
  /** What the user typed, without spaces around it. */
  text: string
  items: Item[]
  /** The number of matches, which can exceed `items`. */
  total: number
  /** Whether there are records whose names were not compared: older ones in a list without a search. */
  isLimited: boolean
}

const MAX_CHOICES = 8
/** The limit of the contract for `filter[search]`. */
const MAX_SEARCH_CHARACTERS = 200
/** In a list without `filter[search]`, only the names of this many newest records are searched. */
export const MAX_COMPARED_NAMES = 100

/** Records that match the text, the newest first. An empty text matches all. `others` are the texts
 *  in the form's other reference fields, by field name. A text that is an ID also filters the list,
 *  if the list has a filter with that name: a payment's form finds only its participant's tasks. */
export async function searchRecords(
  visit: Visit,
  resource: Resource,
  typed: string,
  others: Record<string, string>,
): Promise<SearchResult> {
  const { filters }: OperationRow = operations[resource.operations.list]
  const text = typed.trim()
  const related = Object.entries(others).filter(([name, id]) => name in filters && isUuid(id))
  const canSearch = 'search' in filters
  const query = {
    ...Object.fromEntries(related.map(([name, id]) => [`filter[${name}]`, id])),
    ...(canSearch &&
      text !== '' && { 'filter[search]': [...text].slice(0, MAX_SEARCH_CHARACTERS).join('') }),
    ...newestFirst(resource),
    'page[size]': canSearch ? MAX_CHOICES : MAX_COMPARED_NAMES,
  }
  const { data, meta } = await listRecords(visit, resource, query)
  if (canSearch) return { resource, text, items: data, total: meta.total, isLimited: false }
  const matching = data.filter((item) =>
    (recordName(resource, item) ?? item.id).toLowerCase().includes(text.toLowerCase()),
  )
  const items = matching.slice(0, MAX_CHOICES)
  const isLimited = meta.total > MAX_COMPARED_NAMES
  return { resource, text, items, total: matching.length, isLimited }
}

/** Tells `item` apart from others with the same name: the first text besides the name. Without such a
 *  text, the short ID if one of `items` has the same name. */
export function distinguishingText(resource: Resource, item: Item, items: Item[]): Content {
  const name = nameField(resource)
  const isText = (schema: Schema): boolean =>
    schema.type === 'string' && !schema.format && !schema.enum
  const value = recordFields(resource)
    .filter(([field, schema]) => field !== name && isText(schema))
    .map(([field]) => item[field])
    .find((text) => typeof text === 'string' && text !== '')
  if (value !== undefined) return String(value)
  const sameName = items.filter((one) => recordName(resource, one) === recordName(resource, item))
  return sameName.length > 1 && shortId(item.id)
}
