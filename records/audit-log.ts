import type { FieldChange } from './changes.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { lowestIdAt, newId } from './ids.ts'
import { daysBefore, type RemovalRun, removeRows } from './removal-run.ts'
import { HOUR_MS } from './time-units.ts'

export interface AuditTarget {
  type: 'account' | 'api_key' | 'export' | 'import' | 'session' | 'user' | 'webhook'
  id: string
  /** The name at the time of the action. */
  name: string
}

export interface NewAuditEntry {
  /** Null: the command line. A user with the ID null: the service itself. */
  user: { id: string | null; fullName: string } | null
  /** The key of the user that made the request. Undefined: no request of the API. */
  apiKeyId?: string
  /** `noun.verbed`, such as `api_key.revoked`. */
  action: string
  target: AuditTarget
  /** For example the changed values. Never a secret. */
  details?: Record<string, unknown>
  ip: string | null
  requestId?: string
}

export interface AuditEntry {
  id: string
  /** Whether it is the event of a change of a record. */
  isEvent: boolean
  userId: string | null
  userName: string
  /** The key of the user that made the request. Null: no request of the API. */
  apiKey: { id: string; name: string } | null
  action: string
  /** `name` is null for records. */
  target: { type: string; id: string; name: string | null }
  /** The names of the changed fields. */
  fields: string[]
  /** The changed fields of a record with their values, which only users may see who may view the record. */
  changes: FieldChange[]
  details: Record<string, unknown>
  ip: string | null
  requestId: string | null
  /** Epoch milliseconds, like all times of records. */
  createdAt: number
}

interface AuditRow {
  id: string
  user_id: string | null
  user_name: string
  api_key_id: string | null
  key_name: string | null
  action: string
  target_type: AuditTarget['type']
  target_id: string
  target_name: string
  details: string
  ip: string | null
  request_id: string | null
  created_at: number
}

/** Call it in the transaction of the audited change. */
export async function insertAuditEntry(
  scope: WriteScope,
  { user, apiKeyId, action, target, details = {}, ip, requestId }: NewAuditEntry,
  now: Date,
): Promise<void> {
  await scope.insert('audit_log', {
    id: newId(),
    user_id: user?.id ?? null,
    user_name: user?.fullName ?? 'The command line',
    api_key_id: apiKeyId ?? null,
    action,
    target_type: target.type,
    target_id: target.id,
    target_name: target.name,
    details: JSON.stringify(details),
    ip,
    request_id: requestId ?? null,
    created_at: now.getTime(),
  })
}

/** By kind of change: how the actions end. */
const VERBS = {
  created: ['created', 'invited'],
  updated: ['updated', 'changed', 'renamed'],
  deleted: ['deleted'],
  downloaded: ['downloaded'],
}
export type Verb = keyof typeof VERBS
export const verbs = Object.keys(VERBS) as Verb[]

export interface AuditFilter {
  /** Null: the command line and the service itself. */
  userId?: string | null
  apiKeyId?: string
  /** The noun before the dot of the action. */
  kind?: string
  /** The kind of change. */
  verb?: Verb
  targetId?: string
  /** Epoch milliseconds, inclusive. */
  from?: number
  /** Epoch milliseconds, exclusive. */
  until?: number
  /** Only older entries: the last ID of the previous page. */
  beforeId?: string
  /** Only newer entries: the first ID of the next page. */
  afterId?: string
  limit: number
}

/** Newest first. */
export async function listAuditEntries(scope: Scope, filter: AuditFilter): Promise<AuditEntry[]> {
  const isBackwards = filter.afterId !== undefined
  const query = scope
    .rows('audit_log')
    .leftJoin('api_keys', (join) =>
      join
        .on('api_keys.account_id', 'audit_log.account_id')
        .on('api_keys.id', 'audit_log.api_key_id'),
    )
    .orderBy('audit_log.id', isBackwards ? 'asc' : 'desc')
    .limit(filter.limit)
  const { userId, apiKeyId, kind, verb, targetId, from, until, beforeId, afterId } = filter
  if (userId !== undefined) query.where('audit_log.user_id', userId)
  if (apiKeyId) query.where('audit_log.api_key_id', apiKeyId)
  // `/` follows `.` in ASCII, so this range has all actions of the noun.
  if (kind) query.where('action', '>=', `${kind}.`).where('action', '<', `${kind}/`)
  if (verb)
    query.where((actions) => {
      for (const ending of VERBS[verb]) actions.orWhere('action', 'like', `%${ending}`)
    })
  if (targetId) query.where('target_id', targetId)
  const ids = periodIds(filter)
  if (from !== undefined)
    query.where('audit_log.id', '>=', ids.from).where('audit_log.created_at', '>=', from)
  if (until !== undefined)
    query.where('audit_log.id', '<', ids.until).where('audit_log.created_at', '<', until)
  if (beforeId) query.where('audit_log.id', '<', beforeId)
  if (afterId) query.where('audit_log.id', '>', afterId)
  const rows: AuditRow[] = await query.select('audit_log.*', 'api_keys.name as key_name')
  if (isBackwards) rows.reverse()
  return rows.map(fromRow)
}

function fromRow(row: AuditRow): AuditEntry {
  const details = JSON.parse(row.details) as Record<string, unknown>
  return {
    id: row.id,
    isEvent: false,
    userId: row.user_id,
    userName: row.user_name,
    apiKey:
      row.api_key_id === null ? null : { id: row.api_key_id, name: row.key_name ?? 'A former key' },
    action: row.action,
    target: { type: row.target_type, id: row.target_id, name: row.target_name },
    fields: Object.keys(details.changes ?? {}),
    changes: [],
    details,
    ip: row.ip,
    requestId: row.request_id,
    createdAt: row.created_at,
  }
}

/** The clocks of two nodes, and those of an ID and its row, differ by less. */
const CLOCK_TOLERANCE_MS = HOUR_MS

/** The IDs of a period, and some more. IDs are in the order of time, and indexed. */
export function periodIds({ from = 0, until = 0 }: Pick<AuditFilter, 'from' | 'until'>) {
  return {
    from: lowestIdAt(from - CLOCK_TOLERANCE_MS),
    until: lowestIdAt(until + CLOCK_TOLERANCE_MS),
  }
}

/** The IDs of all targets of an action. */
export function listAuditTargets(scope: Scope, action: string): Promise<string[]> {
  return scope.rows('audit_log').where({ action }).distinct().pluck('target_id')
}

type Changes = Record<string, { from: unknown; to: unknown }>

/** The differences of two flat objects with the same keys, for the details of an entry. Undefined:
 *  there are none. */
export function changesBetween<T extends object>(before: T, after: T): Changes | undefined {
  const changes = Object.entries(after)
    .map(([name, to]): [string, { from: unknown; to: unknown }] => [
      name,
      { from: before[name as keyof T], to },
    ])
    .filter(([, { from, to }]) => from !== to)
  return changes.length === 0 ? undefined : Object.fromEntries(changes)
}

export function removeOldAuditEntries(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.auditLog)
  return removeRows(run, {
    table: 'audit_log',
    key: ['id'],
    // The IDs are in the order of time, and indexed.
    condition: (rows) => rows.where('id', '<', lowestIdAt(until)).where('created_at', '<', until),
  })
}
