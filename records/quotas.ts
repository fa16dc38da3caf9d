/** Quotas: how much each account may have, and how many events it may cause within a day. */
import type { Scope } from './database/scope.ts'
import { select } from './database/statements.ts'
import { lowestIdAt } from './ids.ts'
import { UNFINISHED_FILE_JOBS } from './index-predicates.ts'
import { countedColumns } from './record-counts.ts'
import { DAY_MS } from './time-units.ts'

/** An operator can set these for each account. */
export const quotaNames = [
  'requests_per_minute',
  'records',
  'events_per_day',
  'webhooks',
  'users',
  'keys_per_user',
  'export_mib',
  'unfinished_exports',
  'unfinished_imports',
] as const
export type QuotaName = (typeof quotaNames)[number]
export type Quotas = Record<QuotaName, number>

/** What an operator has set for the user or, failing that, for each user of the account. Null: the
 *  default applies. For statements that read `users`. */
export const REQUESTS_PER_MINUTE = `coalesce(users.requests_per_minute, (
  select value from account_quotas
  where account_quotas.account_id = users.account_id and name = 'requests_per_minute'))`

/** The defaults that no setting changes. */
export const FIXED_DEFAULTS = { webhooks: 50, users: 500, keys_per_user: 100 }
export const MIB = 1024 ** 2
const RECORD_TABLES = [
  'participants',
  'tasks',
  'jobs',
  'job_applications',
  'payments',
  'exports',
  'imports',
]

/** The quotas of the account. `defaults` apply to quotas that no operator has set. */
export async function findQuotas<Some extends Partial<Quotas>>(
  scope: Scope,
  defaults: Some,
): Promise<Some> {
  const rows: { name: QuotaName; value: number }[] = await scope
    .rows('account_quotas')
    .select('name', 'value')
  return { ...defaults, ...Object.fromEntries(rows.map(({ name, value }) => [name, value])) }
}

/** Null: the default applies again. */
export async function setQuota(scope: Scope, name: QuotaName, value: number | null): Promise<void> {
  await scope.rows('account_quotas').where({ name }).delete()
  if (value !== null)
    await scope.sql('account_quotas').insert({ account_id: scope.accountId, name, value })
}

/** The use of the quotas that limit changes by the API and the console. */
export type WriteUse = Pick<Quotas, 'records' | 'events_per_day'>

/** Counts index entries of the tables that `record_counts` lacks. */
export async function countWriteUse(scope: Scope, now: Date): Promise<WriteUse> {
  const id = scope.accountId
  const stored = RECORD_TABLES.filter((table) => table in countedColumns)
  const others = RECORD_TABLES.filter((table) => !(table in countedColumns))
  const [use] = await select<WriteUse>(
    scope.sql,
    `select coalesce((select sum(records) from record_counts
        where account_id = ? and list in (${stored.map(() => '?').join(', ')})), 0)
        ${others.map((table) => `+ ${countOf(table)}`).join(' ')} as records,
      (select count(*) from events where account_id = ? and id >= ?) as events_per_day`,
    [id, ...stored, ...others.map(() => id), id, lowestIdAt(startOfDay(now))],
  )
  return {
    records: Number(use?.records ?? 0),
    events_per_day: Number(use?.events_per_day ?? 0),
  }
}

/** The bytes of the files of an account: of exports, and of imports with all uploads. Two values for
 *  each account ID. */
export const STORED_BYTES = `
  coalesce((select sum(byte_size) from exports where account_id = ? and file_removed_at is null), 0) +
  coalesce((select sum(length(bytes)) from import_chunks where account_id = ?), 0)`

/** The use of each quota. The rate limit has none: each user has a count of their own. */
export type QuotaUse = Omit<Quotas, 'requests_per_minute'>

/** For `keys_per_user`, the use of the user with the most active keys. */
export async function countUse(scope: Scope, now: Date): Promise<QuotaUse> {
  const id = scope.accountId
  const [use] = await select<Omit<QuotaUse, keyof WriteUse> & { export_bytes: number }>(
    scope.sql,
    `select (select count(*) from webhooks where account_id = ? and deleted_at is null) as webhooks,
      ${countOf('users')} as users,
      (select max(active) from (
        select count(*) as active from api_keys where account_id = ? and revoked_at is null group by user_id
      ) as by_user) as keys_per_user,
      ${STORED_BYTES} as export_bytes,
      ${countOf('exports', UNFINISHED_FILE_JOBS)} as unfinished_exports,
      ${countOf('imports', UNFINISHED_FILE_JOBS)} as unfinished_imports`,
    [id, id, id, id, id, id, id],
  )
  return {
    ...(await countWriteUse(scope, now)),
    webhooks: Number(use?.webhooks),
    users: Number(use?.users),
    keys_per_user: Number(use?.keys_per_user),
    export_mib: Math.ceil(Number(use?.export_bytes) / MIB),
    unfinished_exports: Number(use?.unfinished_exports),
    unfinished_imports: Number(use?.unfinished_imports),
  }
}

const countOf = (table: string, condition = 'true'): string =>
  `(select count(*) from ${table} where account_id = ? and ${condition})`

/** Midnight in UTC, in epoch milliseconds. */
function startOfDay(now: Date): number {
  return now.getTime() - (now.getTime() % DAY_MS)
}

/** The next midnight in UTC, when the count for `events_per_day` starts again from 0. */
export function endOfDay(now: Date): Date {
  return new Date(startOfDay(now) + DAY_MS)
}
