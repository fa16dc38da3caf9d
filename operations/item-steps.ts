/** Decides what the items of a batch or an import do: creates or updates, with valid data. */
import { InvalidInput, StatusError } from '../errors.ts'
import type { OperationId } from '../generated/operations.ts'
import { type Resource, resources } from '../generated/resources.ts'
import { assertStorable } from './storable.ts'
import { validate } from './validate.ts'

export interface Item {
  /** `update`: updates the record with `id`, or without `id` the one with `data.external_id`.
   *  `upsert`: updates the record with `data.external_id`, or creates it. Fields that only a create
   *  accepts must have the values of the existing record. */
  action: 'create' | 'update' | 'upsert'
  /** Only for `update`. */
  id?: string
  /** The body of the create or update, before its validation. */
  data: Record<string, unknown>
}

/** The operations on a resource, as items need them. */
export interface ItemKind {
  create: OperationId
  update: OperationId
  idParameter: string
  table: string
  noun: string
  /** The fields that a create accepts, but no update. */
  fixedFields: ReadonlySet<string>
}

const KINDS = new Map(resources.flatMap(toKind))

/** The kind of the records that `create` creates. Undefined if no operation updates them. */
export function itemKindOf(create: OperationId): ItemKind | undefined {
  return KINDS.get(create)
}

function toKind(resource: Resource): [OperationId, ItemKind][] {
  const { slug, type, idParameter, operations, creation, change } = resource
  const { create, update } = operations
  if (create === null || update === null) return []
  const fields = new Set(Object.keys(creation?.properties ?? {}))
  const fixedFields = fields.difference(new Set(Object.keys(change?.properties ?? {})))
  const [table, noun] = [slug.replaceAll('-', '_'), type.replaceAll('_', ' ')]
  return [[create, { create, update, idParameter, table, noun, fixedFields }]]
}

/** An item whose data is valid. */
export interface Step {
  operation: OperationId
  /** Empty for a create. */
  path: Record<string, string>
  body: object
  /** The record must have these values. */
  fixed: Record<string, unknown>
}

/** Decides whether the item creates or updates, and validates its data. Throws a refusal. */
export function prepareItem(
  kind: ItemKind,
  idsByExternalId: ReadonlyMap<string, string>,
  { action, id, data }: Item,
): Step {
  assertStorable(data)
  if (id !== undefined && action !== 'update')
    throw new InvalidInput({ id: [`is not possible with the action ${action}.`] })
  const { external_id: externalId } = data
  const known = typeof externalId === 'string' ? idsByExternalId.get(externalId) : undefined
  if (action === 'upsert' && typeof externalId !== 'string')
    throw new InvalidInput({ external_id: ['is required for an upsert.'] })
  if (action === 'create' || (action === 'upsert' && known === undefined))
    return newStep(kind.create, {}, data)

  const target = id ?? known
  if (target === undefined && typeof externalId !== 'string')
    throw new InvalidInput({
      id: ['is required, unless `external_id` in `data` names the record.'],
    })
  if (target === undefined) throw new StatusError(404, `There is no such ${kind.noun}.`)
  const path = { [kind.idParameter]: target }
  if (action === 'update') return newStep(kind.update, path, data)
  const [fixed, changing] = partition(data, kind.fixedFields)
  return newStep(kind.update, path, changing, fixed)
}

/** Validation adds defaults to its input, and the data may be validated again. */
function newStep(operation: OperationId, path: Step['path'], data: object, fixed = {}): Step {
  const { body } = validate(operation, { path, body: { ...data } })
  return { operation, path, body: body as unknown as object, fixed }
}

function partition(data: object, names: ReadonlySet<string>): [object, object] {
  const entries = Object.entries(data)
  return [
    Object.fromEntries(entries.filter(([name]) => names.has(name))),
    Object.fromEntries(entries.filter(([name]) => !names.has(name))),
  ]
}

/** Why an item is not done. */
export type Refusal = InvalidInput | StatusError

export function isRefusal(error: unknown): error is Refusal {
  return error instanceof InvalidInput || error instanceof StatusError
}
