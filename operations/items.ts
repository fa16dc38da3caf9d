/** Runs creates, updates and upserts of one resource in one transaction, for batches and imports. Each
 *  item has the effect and the result of the single operation, except that a refused item has no
 *  effect. */
import { validate as isUuid } from 'uuid'
import { InvalidInput } from '../errors.ts'
import { operations } from '../generated/operations.ts'
import { params } from '../generated/validators.js'
import type { Caller } from '../handlers/call.ts'
import { findChanges } from '../records/changes.ts'
import type { WriteScope } from '../records/database/scope.ts'
import type { Quotas } from '../records/quotas.ts'
import { lockRecords, lockReferences } from '../records/references.ts'
import { emitMany, type NewEvent } from '../webhooks/emit.ts'
import type { QuotaShare } from './account-quota.ts'
import { handle, newEmitters } from './handle.ts'
import {
  type Item,
  type ItemKind,
  isRefusal,
  prepareItem,
  type Refusal,
  type Step,
} from './item-steps.ts'

export type ItemOutcome =
  | { record: object; isCreated: boolean; isChanged: boolean; refusal?: undefined }
  | { refusal: Refusal }

export interface ItemContext {
  kind: ItemKind
  scope: WriteScope
  caller: Caller
  now: Date
  quotas: Quotas
  /** Every item takes its part. The caller releases the share when the transaction is rolled back. */
  share: QuotaShare
}

/** A pass over all items. */
interface Pass extends ItemContext {
  /** Runs each item in a savepoint of its own. */
  isCareful: boolean
  /** The events of the items that were done so far. */
  events: NewEvent[]
  /** The locked records: their IDs by external ID. */
  idsByExternalId: Map<string, string>
}

/** Returns the outcomes in the order of the items. Items run in their order, and each sees the changes
 *  of the items before it. Emits the events of all items at the end, in their order.
 *
 *  On PostgreSQL, a failed statement undoes all statements since the last savepoint, and inserts are
 *  sent together. So the first pass has one savepoint for all items. Only when it fails, a second pass
 *  has one for each item. */
export async function runItems(context: ItemContext, items: Item[]): Promise<ItemOutcome[]> {
  const { scope, share } = context
  const { size } = share
  try {
    return await scope.trx.savepoint(() => runPass(context, items, false))
  } catch (error) {
    if (!isRefusal(error)) throw error
    share.release(size)
  }
  return runPass(context, items, true)
}

async function runPass(
  context: ItemContext,
  items: Item[],
  isCareful: boolean,
): Promise<ItemOutcome[]> {
  const lockedReferences = await lockReferred(context, items)
  const scope = { ...context.scope, lockedReferences }
  const pass: Pass = { ...context, scope, isCareful, events: [], idsByExternalId: new Map() }
  await lockTargets(pass, items)
  const outcomes: ItemOutcome[] = []
  for (const item of items) outcomes.push(await runItem(pass, item))
  await emitMany(pass.scope, pass.events, pass.now)
  return outcomes
}

/** Locks the records that the items refer to, so that no item has to, and the inserts of all items
 *  are sent together. */
async function lockReferred({ scope }: ItemContext, items: Item[]): Promise<Set<string>> {
  const idsIn = (field: string): string[] =>
    items.map(({ data }) => data[field]).filter((id): id is string => isUuid(id))
  // An application locks its job for an update, and cannot raise a weaker lock of two transactions.
  await lockRecords(scope, 'jobs', { ids: idsIn('job_id'), externalIds: [] })
  return new Set([
    ...(await lockReferences(scope, 'participants', idsIn('participant_id'))),
    ...(await lockReferences(scope, 'tasks', idsIn('task_id'))),
  ])
}

/** Locks the existing records that the items name, all at once: two transactions with the same
 *  records cannot wait for each other. */
async function lockTargets(pass: Pass, items: Item[]): Promise<void> {
  const { scope, kind } = pass
  const ids: string[] = []
  const externalIds: string[] = []
  for (const { action, id, data } of items) {
    if (action === 'create') continue
    if (id === undefined) {
      if (typeof data.external_id === 'string') externalIds.push(data.external_id)
    } else if (params[kind.update].path({ [kind.idParameter]: id })) ids.push(id)
  }
  for (const record of await lockRecords(scope, kind.table, { ids, externalIds }))
    if (record.external_id !== null) pass.idsByExternalId.set(record.external_id, record.id)
}

/** Throws a refusal that may have left something behind, unless the pass is careful. */
async function runItem(pass: Pass, item: Item): Promise<ItemOutcome> {
  const { share, now, events, scope } = pass
  const { size } = share
  const eventCount = events.length
  let step: Step | undefined
  try {
    const prepared = prepareItem(pass.kind, pass.idsByExternalId, item)
    share.take(operations[prepared.operation], now)
    step = prepared
    const run = () => perform(pass, prepared)
    const { before, after } = await (pass.isCareful ? scope.trx.savepoint(run) : run())
    if (before?.external_id) pass.idsByExternalId.delete(before.external_id)
    if (after.external_id) pass.idsByExternalId.set(after.external_id, after.id)
    const isChanged = events.length > eventCount
    return { record: after, isCreated: before === undefined, isChanged }
  } catch (error) {
    if (!isRefusal(error)) throw error
    if (step && !pass.isCareful) throw error
    share.release(size)
    events.length = eventCount
    if (step && item.action === 'upsert' && (await isNowTaken(pass, item, error)))
      return runItem(pass, item)
    return { refusal: error }
  }
}

/** Has another transaction created the record that the item wanted to create? */
async function isNowTaken(pass: Pass, item: Item, refusal: Refusal): Promise<boolean> {
  const externalId = String(item.data.external_id)
  if (pass.idsByExternalId.has(externalId)) return false
  if (!(refusal instanceof InvalidInput && 'external_id' in refusal.errors)) return false
  await lockTargets(pass, [item])
  return pass.idsByExternalId.has(externalId)
}

interface WrittenRecord {
  id: string
  external_id: string | null
}

/** Returns the record before and after the step. Throws `InvalidInput` if a fixed field has another
 *  value. */
async function perform(
  { scope, caller, now, quotas, events }: Pass,
  { operation, path, body, fixed }: Step,
): Promise<{ before: WrittenRecord | undefined; after: WrittenRecord }> {
  let before: WrittenRecord | undefined
  const assertMatch = (current: object): void => {
    before = current as WrittenRecord
    const [changed] = Object.keys(findChanges<Record<string, unknown>>({ ...current }, fixed) ?? {})
    if (changed !== undefined)
      throw new InvalidInput({ [changed]: ['cannot be changed by an upsert.'] })
  }
  const input = { path, query: {}, body } as never
  const emitters = newEmitters(async (emitted) => void events.push(...emitted))
  const context = { scope, now, quotas, ...emitters }
  const after = await handle(operation, { input, caller, assertMatch }, context)
  return { before, after: after as WrittenRecord }
}
