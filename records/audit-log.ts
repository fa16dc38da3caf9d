import type { Scope, WriteScope } from './database/scope.ts'
import { lowestIdAt, newId } from './ids.ts'
import { daysBefore, type RemovalRun, removeRows } from './removal-run.ts'

export interface AuditTarget {
  type: 'account' | 'api_key' | 'session' | 'user' | 'webhook'
  id: string
  /** The name at the time of the action. */
  name: string
}

export interface NewAuditEntry {
  /** Null: the command line. A user with the ID null: the service itself. */
  user: { id: string | null; fullName: string } | null
  /** `noun.verbed`, such as `api_key.revoked`. */
  action: string
  target: AuditTarget
  /** For example the changed values. Never a secret. */
  details?: Record<string, unknown>
  ip: string | null
}

export interface AuditEntry {
  id: string
  userId: string | null
  userName: string
  action: string
  target: AuditTarget
  details: Record<string, unknown>
  ip: string | null
  /** Epoch milliseconds, like all times of records. */
  createdAt: number
}

interface AuditRow {
  id: string
  user_id: string | null
  user_name: string
  action: string
  target_type: AuditTarget['type']
  target_id: string
  target_name: string
  details: string
  ip: string | null
  created_at: number
}

/** Call it in the transaction of the audited change. */
export async function insertAuditEntry(
  scope: WriteScope,
  { user, action, target, details = {}, ip }: NewAuditEntry,
  now: Date,
): Promise<void> {
  await scope.insert('audit_log', {
    id: newId(),
    user_id: user?.id ?? null,
    user_name: user?.fullName ?? 'The command line',
    action,
    target_type: target.type,
    target_id: target.id,
    target_name: target.name,
    details: JSON.stringify(details),
    ip,
    created_at: now.getTime(),
  })
}

export interface AuditFilter {
  /** Null: the command line and the service itself. */
  userId?: string | null
  /** The whole action, or the noun before its dot. */
  action?: string
  targetId?: string
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
    .orderBy('id', isBackwards ? 'asc' : 'desc')
    .limit(filter.limit)
  if (filter.userId !== undefined) query.where('user_id', filter.userId)
  if (filter.action?.includes('.')) query.where('action', filter.action)
  // `/` follows `.` in ASCII, so this range has all actions of the noun.
  else if (filter.action)
    query.where('action', '>=', `${filter.action}.`).where('action', '<', `${filter.action}/`)
  if (filter.targetId) query.where('target_id', filter.targetId)
  if (filter.beforeId) query.where('id', '<', filter.beforeId)
  if (filter.afterId) query.where('id', '>', filter.afterId)
  const rows: AuditRow[] = await query
  if (isBackwards) rows.reverse()
  return rows.map((row) => ({
    id: row.id,
    userId: row.user_id,
    userName: row.user_name,
    action: row.action,
    target: { type: row.target_type, id: row.target_id, name: row.target_name },
    details: JSON.parse(row.details) as Record<string, unknown>,
    ip: row.ip,
    createdAt: row.created_at,
  }))
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
