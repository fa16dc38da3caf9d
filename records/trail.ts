/** Who did what: the entries of the audit log, and those of records. The event of a created, updated or
 *  deleted record is also the entry of this change, so a change needs no second row. */
import type { EventType } from '../generated/asyncapi.ts'
import { eventTypes } from '../generated/events.ts'
import { listApiKeys } from './api-keys.ts'
import {
  type AuditEntry,
  type AuditFilter,
  listAuditEntries,
  listAuditTargets,
  periodIds,
  type Verb,
} from './audit-log.ts'
import type { FieldChange } from './changes.ts'
import { isOfAccount, orderOfIds } from './database/order-of-ids.ts'
import type { Scope } from './database/scope.ts'
import { type Condition, inBatches, jsonRows, select } from './database/statements.ts'
import type { NewEventRow } from './events.ts'

const VERBS: readonly string[] = ['created', 'updated', 'deleted'] satisfies Verb[]

/** The other types report something about a change that has an event of its own, or what a job has done. */
const CHANGE_TYPES = (Object.keys(eventTypes) as EventType[]).filter((type) =>
  VERBS.includes(verbOf(type)),
)

function verbOf(type: string): string {
  return type.slice(type.indexOf('.') + 1)
}

/** The types of records that have entries. */
export const recordTypes = [...new Set(CHANGE_TYPES.map((type) => eventTypes[type].resourceType))]

/** Newest first. */
export async function listTrail(scope: Scope, filter: AuditFilter): Promise<AuditEntry[]> {
  const entries = (
    await Promise.all([listAuditEntries(scope, filter), listRecordEntries(scope, filter)])
  ).flat()
  const isBackwards = filter.afterId !== undefined
  entries.sort((one, other) => (one.id < other.id ? 1 : -1))
  return isBackwards ? entries.slice(-filter.limit) : entries.slice(0, filter.limit)
}

const BATCH_ENTRIES = 500

/** All matching entries in batches, newest first. Memory does not grow with their number. */
export async function* eachTrailEntry(
  scope: Scope,
  filter: Omit<AuditFilter, 'limit'>,
): AsyncGenerator<AuditEntry[]> {
  for (let beforeId: string | undefined; ; ) {
    const entries = await listTrail(scope, { ...filter, beforeId, limit: BATCH_ENTRIES })
    if (entries.length > 0) yield entries
    if (entries.length < BATCH_ENTRIES) return
    beforeId = entries.at(-1)?.id
  }
}

/** The entries of records alone, in no order. At least the newest ones up to the limit. */
async function listRecordEntries(scope: Scope, filter: AuditFilter): Promise<AuditEntry[]> {
  const { kind, verb, afterId, beforeId, targetId, from, until } = filter
  const types = CHANGE_TYPES.filter(
    (type) =>
      (kind === undefined || eventTypes[type].resourceType === kind) &&
      (verb === undefined || verbOf(type) === verb),
  )
  if (types.length === 0) return []
  const actors = await actorConditions(scope, filter)
  const isInOrderOfIds = targetId === undefined && actors === undefined && !kind && !verb
  const conditions: Condition[] = [
    isInOrderOfIds
      ? isOfAccount(scope, 'events')
      : { sql: 'account_id = ?', bindings: [scope.accountId] },
  ]
  const add = (sql: string, ...bindings: Condition['bindings']): void =>
    void conditions.push({ sql, bindings })
  if (targetId) add('resource_id = ?', targetId)
  if (beforeId) add('id < ?', beforeId)
  if (afterId) add('id > ?', afterId)
  const ids = periodIds(filter)
  if (from !== undefined) add('id >= ? and created_at >= ?', ids.from, from)
  if (until !== undefined) add('id < ? and created_at < ?', ids.until, until)
  const byType =
    isInOrderOfIds || targetId !== undefined
      ? [{ sql: `event_type in (${types.map(() => '?').join(', ')})`, bindings: types }]
      : types.map((type) => ({ sql: 'event_type = ?', bindings: [type] }))
  const parts = (actors ?? [ALL]).flatMap((actor) => byType.map((type) => [actor, type]))
  const nearest = await findNearestParts(scope, parts, conditions, filter)
  const batches = inBatches(nearest, MAX_PARTS).map((some) =>
    selectNewest(
      scope,
      some.map((part) => [...conditions, ...part]),
      filter,
    ),
  )
  return (await Promise.all(batches)).flat().map(fromRow)
}

/** The parts with the newest rows, or with the oldest ones after `afterId`: as many as rows are wanted suffice. A
 *  user with 90 keys has 1,400 parts, and planning a statement with all of them takes most of its time. */
async function findNearestParts(
  { dialect, sql }: Scope,
  parts: Condition[][],
  conditions: Condition[],
  { userId, targetId, afterId, limit }: AuditFilter,
): Promise<Condition[][]> {
  if (parts.length <= limit || !userId || targetId) return parts
  const direction = afterId ? 'asc' : 'desc'
  const rows = parts.map(([actor, type], part) => ({
    part,
    actor: actor?.bindings[0],
    type: type?.bindings[0],
  }))
  const found = await select<{ part: number }>(
    sql,
    `select part from (
       select input.part, (
         select id from events
         where ${conditions.map((one) => one.sql).join(' and ')} and ${ACTOR} = input.actor
           and user_id = ? and event_type = input.type
         order by id ${direction} limit 1) as nearest
       from ${jsonRows(dialect, { part: 'integer', actor: 'uuid', type: 'text' })}
     ) as parts where nearest is not null order by nearest ${direction} limit ?`,
    [...conditions.flatMap((one) => one.bindings), userId, JSON.stringify(rows), limit],
  )
  return found.map(({ part }) => parts[part] ?? [])
}

/** SQLite accepts 500 parts in a statement, and 32,766 variables. */
const MAX_PARTS = 400

/** The newest rows that meet all conditions of a part, or the oldest ones after `afterId`. Each part reads
 *  its rows from an index. One condition with `or` would read all matching rows. */
function selectNewest(
  { sql }: Scope,
  parts: Condition[][],
  { afterId, limit }: AuditFilter,
): Promise<RecordEntryRow[]> {
  const direction = afterId ? 'asc' : 'desc'
  const order = `order by ${orderOfIds('events', direction)} limit ?`
  const statements = parts.map(
    (conditions) =>
      `select * from (
         select ${COLUMNS} from events
         where ${conditions.map((one) => one.sql).join(' and ')} ${order}
       ) as part`,
  )
  const bindings = parts.flatMap((conditions) => [
    ...conditions.flatMap((one) => one.bindings),
    limit,
  ])
  return select(
    sql,
    `select found.*, users.full_name as user_name, api_keys.name as key_name
     from (select * from (${statements.join(' union all ')}) as parts order by id ${direction} limit ?) as found
     left join users on users.account_id = found.account_id and users.id = found.user_id
     left join api_keys on api_keys.account_id = found.account_id and api_keys.id = found.api_key_id`,
    [...bindings, limit],
  )
}

const COLUMNS =
  'account_id, id, event_type, resource_type, resource_id, changes, actor_type, api_key_id, user_id, ' +
  'ip, request_id, created_at'
const ALL: Condition = { sql: '1 = 1', bindings: [] }

interface RecordEntryRow extends Omit<NewEventRow, 'data' | 'actor_type'> {
  actor_type: NewEventRow['actor_type'] | null
  user_name: string | null
  key_name: string | null
}

function fromRow(row: RecordEntryRow): AuditEntry {
  const changes: FieldChange[] = row.changes === null ? [] : JSON.parse(row.changes)
  const unnamed = row.actor_type === null ? 'Not recorded' : 'Muster'
  return {
    id: row.id,
    isEvent: true,
    userId: row.user_id,
    userName: row.user_name ?? (row.user_id === null ? unnamed : 'A former user'),
    apiKey:
      row.api_key_id === null ? null : { id: row.api_key_id, name: row.key_name ?? 'A former key' },
    action: row.event_type,
    target: { type: row.resource_type, id: row.resource_id, name: null },
    fields: changes.map(({ field }) => field),
    changes,
    details: {},
    ip: row.ip,
    requestId: row.request_id,
    createdAt: row.created_at,
  }
}

/** As in the index. */
const ACTOR = 'coalesce(api_key_id, user_id)'

/** One condition for each actor: the keys of a user have entries of their own. Undefined: the filter names no
 *  actor. */
async function actorConditions(
  scope: Scope,
  { userId, apiKeyId }: AuditFilter,
): Promise<Condition[] | undefined> {
  if (userId === null) return [{ sql: `${ACTOR} is null`, bindings: [] }]
  if (userId === undefined)
    return apiKeyId ? [{ sql: `${ACTOR} = ?`, bindings: [apiKeyId] }] : undefined
  const actors = apiKeyId ? [apiKeyId] : [userId, ...(await listKeysOf(scope, userId))]
  return actors.map((id) => ({ sql: `${ACTOR} = ? and user_id = ?`, bindings: [id, userId] }))
}

/** The keys that the user has or had. Leaves out revoked keys that were never used. */
async function listKeysOf(scope: Scope, userId: string): Promise<string[]> {
  const [own, passedOn] = await Promise.all([
    listApiKeys(scope, userId),
    listAuditTargets(scope, 'api_key.handed_over'),
  ])
  const used = own
    .filter(({ revokedAt, lastUsedAt }) => revokedAt === null || lastUsedAt !== null)
    .map(({ id }) => id)
  return [...new Set([...used, ...passedOn])]
}
