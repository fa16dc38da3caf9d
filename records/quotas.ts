/** Quotas: how much each account may have, and cause within a day. */
import type { Scope } from './database/scope.ts'
import { select } from './database/statements.ts'
import { lowestIdAt } from './ids.ts'

/** An operator can set these for each account. */
export const quotaNames = ['records', 'events_per_day', 'webhooks'] as const
export type QuotaName = (typeof quotaNames)[number]
export type Quotas = Record<QuotaName, number>

export const MAX_WEBHOOKS_PER_ACCOUNT = 50
const RECORD_TABLES = ['participants', 'tasks', 'jobs', 'job_applications', 'payments', 'exports']
const DAY_MS = 86_400_000

/** The quotas of the account. `defaults`: those of an account for which none is set. */
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

/** What the changes of the API and the console count against. */
export type WriteUse = Pick<Quotas, 'records' | 'events_per_day'>

/** Counts index entries: about 50 ms for a million records. */
export async function countWriteUse(scope: Scope, now: Date): Promise<WriteUse> {
  const id = scope.accountId
  const [use] = await select<WriteUse>(
    scope.sql,
    `select ${RECORD_TABLES.map(countRows).join(' + ')} as records,
      (select count(*) from events where account_id = ? and id >= ?) as events_per_day`,
    [...RECORD_TABLES.map(() => id), id, lowestIdAt(startOfDay(now))],
  )
  return {
    records: Number(use?.records ?? 0),
    events_per_day: Number(use?.events_per_day ?? 0),
  }
}

/** What counts against each quota. */
export async function countUse(scope: Scope, now: Date): Promise<Quotas> {
  const [webhooks]: { total: number }[] = await scope
    .rows('webhooks')
    .whereNull('deleted_at')
    .count({ total: '*' })
  return { ...(await countWriteUse(scope, now)), webhooks: Number(webhooks?.total) }
}

const countRows = (table: string): string => `(select count(*) from ${table} where account_id = ?)`

/** Midnight in UTC, in epoch milliseconds. */
function startOfDay(now: Date): number {
  return now.getTime() - (now.getTime() % DAY_MS)
}

/** When the quota of the day begins again. */
export function endOfDay(now: Date): Date {
  return new Date(startOfDay(now) + DAY_MS)
}
