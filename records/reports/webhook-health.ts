/** The health of webhooks. The console and the metrics show the states that this file decides.
 *  Reads counts of attempts and a limited number of deliveries, so the cost does not grow with the
 *  number of attempts or deliveries. */
import type { Outcome } from '../attempt.ts'
import { SHORT_SPAN_MS } from '../attempt-counts.ts'
import type { Db } from '../database/open.ts'
import type { Scope } from '../database/scope.ts'
import { jsonRows, select } from '../database/statements.ts'
import { TEST_EVENT, undeliveredCondition } from '../deliveries.ts'
import { binColumns, percentile, toBins } from '../duration-bins.ts'
import { lowestIdAt } from '../ids.ts'
import { NOTIFIED_ACCOUNTS } from '../subscriptions.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time-units.ts'

/** A webhook is failing after this many failed attempts in a row. */
const FAILING_ATTEMPTS = 3
/** A webhook is degraded when more than this share of its attempts in the last hour failed. */
const DEGRADED_SHARE = 0.05
const HOURS = 24
/** About the most rows of each state that `countUndelivered` reads for all webhooks together. More
 *  would be slow: each row may be in another block of the database file. */
const MAX_ROWS_READ = 5_000
const MAX_ROWS_READ_PER_WEBHOOK = 1_000

export type HealthState = 'healthy' | 'degraded' | 'failing' | 'disabled' | 'no_traffic'

interface AttemptCounts {
  succeeded: number
  failed: number
}

export interface WebhookHealth {
  state: HealthState
  /** The service has disabled the webhook, because it was failing for days. */
  isDisabledByService: boolean
  /** Null: there was none yet. `at`: epoch milliseconds, like all times of records. */
  lastAttempt: { at: number; outcome: Outcome; status: number | null } | null
  lastSuccessAt: number | null
  /** Failed attempts since the last success. Another URL, or enabling the webhook, sets the count
   *  to 0. */
  failures: number
  failingSince: number | null
  lastHour: AttemptCounts
  lastDay: AttemptCounts
  /** The last 24 hours, oldest first. The last one is the current hour. */
  hours: (AttemptCounts & { startsAt: number })[]
  /** 95 % of the attempts of the last 24 hours took at most this long. Null: there were none. */
  p95Ms: number | null
  undelivered: Undelivered
}

/** Numbers of undelivered deliveries. A count that reaches `countedUpTo` means "this many or
 *  more". */
export interface Undelivered {
  countedUpTo: number
  /** In the last 24 hours. */
  failed: number
  pending: number
  retrying: number
  /** The creation of the oldest pending or retrying delivery. */
  oldestWaitingSince: number | null
}

const NONE_UNDELIVERED: Undelivered = {
  // Higher than the counts, so they are exact.
  countedUpTo: 1,
  failed: 0,
  pending: 0,
  retrying: 0,
  oldestWaitingSince: null,
}

/** By webhook ID, without deleted webhooks and those of other accounts. */
export async function findWebhookHealth(
  scope: Scope,
  webhookIds: string[],
  now: Date,
): Promise<Map<string, WebhookHealth>> {
  if (webhookIds.length === 0) return new Map()
  const [states, hours, durations, undelivered] = await Promise.all([
    findStates(scope, webhookIds, now),
    countHours(scope, webhookIds, now),
    findDurations(scope, webhookIds, now),
    countUndelivered(scope, webhookIds, now),
  ])
  return new Map(
    states.map((row) => {
      const ofWebhook = hours.get(row.id) ?? []
      const health: WebhookHealth = {
        ...stateFromRow(row),
        lastDay: { succeeded: sum(ofWebhook, 'succeeded'), failed: sum(ofWebhook, 'failed') },
        hours: ofWebhook,
        p95Ms: durations.get(row.id) ?? null,
        undelivered: undelivered.get(row.id) ?? NONE_UNDELIVERED,
      }
      return [row.id, health]
    }),
  )
}

/** Enabled webhooks that are failing, and those that the service has disabled. */
export async function countTroubledWebhooks({ sql, accountId }: Scope): Promise<number> {
  const [row] = await select<{ troubled: number }>(
    sql,
    `select count(*) as troubled
     from webhooks join webhook_health on webhook_id = webhooks.id
     where account_id = ? and deleted_at is null
       and case when enabled then failures >= ${FAILING_ATTEMPTS} else webhook_health.disabled_at is not null end`,
    [accountId],
    'count_troubled_webhooks',
  )
  return Number(row?.troubled)
}

/** All webhooks of the installation by state. */
export async function countWebhookStates(db: Db, now: Date): Promise<Record<HealthState, number>> {
  const { text, bindings } = statesQuery('true', [], now)
  const rows = await select<{ state: HealthState; webhooks: number }>(
    db.read,
    `select state, count(*) as webhooks from (${text}) as states group by state`,
    bindings,
  )
  const counts = Object.fromEntries(rows.map(({ state, webhooks }) => [state, Number(webhooks)]))
  return { healthy: 0, degraded: 0, failing: 0, disabled: 0, no_traffic: 0, ...counts }
}

/** A webhook whose state differs from what operational events told last. */
export interface ChangedState {
  id: string
  accountId: string
  url: string
  description: string
  state: HealthState
  /** Null: none was told yet. */
  before: HealthState | null
  isDisabledByService: boolean
  failures: number
  lastHour: AttemptCounts
}

/** A webhook's state is told at most once in this time. */
const HOLD_MS = 10 * MINUTE_MS

/** The webhooks of accounts with operational events. A webhook without traffic keeps its earlier
 *  state. None of suspended accounts. */
export async function listChangedStates(db: Db, now: Date): Promise<ChangedState[]> {
  const isNotified = `suspended_at is null and account_id in (${NOTIFIED_ACCOUNTS})`
  const { text, bindings } = statesQuery(isNotified, [], now)
  const rows = await select<StateRow & WebhookRow>(
    db.read,
    `select states.*, account_id, url, description, notified_state
     from (${text}) as states join webhooks on webhooks.id = states.id
     where notified_state is null or (state <> notified_state and state <> 'no_traffic'
       and (notified_at is null or notified_at not between ? and ?))`,
    [...bindings, now.getTime() - HOLD_MS, now.getTime()],
  )
  return rows.map((row) => {
    const { state, isDisabledByService, failures, lastHour } = stateFromRow(row)
    const { id, account_id: accountId, url, description, notified_state: before } = row
    return {
      id,
      accountId,
      url,
      description,
      state,
      before,
      isDisabledByService,
      failures,
      lastHour,
    }
  })
}

interface WebhookRow {
  account_id: string
  url: string
  description: string
  notified_state: HealthState | null
}

interface StateRow {
  id: string
  state: HealthState
  disabled_by_service_at: number | null
  last_attempt_at: number | null
  last_outcome: Outcome | null
  last_status: number | null
  last_success_at: number | null
  failures: number | null
  failing_since: number | null
  succeeded: number | null
  failed: number | null
}

type Bindings = (string | number)[]

/** A query for the states of the webhooks that match the condition, and for the values that decide
 *  a state. */
function statesQuery(
  condition: string,
  conditionBindings: Bindings,
  now: Date,
): { text: string; bindings: Bindings } {
  const lastHour = `from attempt_counts
    where webhook_id = webhooks.id and span_ms = ${SHORT_SPAN_MS} and starts_at > ?`
  const text = `
    select found.*, case
      when not enabled then 'disabled'
      when failures >= ${FAILING_ATTEMPTS} then 'failing'
      when last_attempt_at is null or last_attempt_at < ? then 'no_traffic'
      when failed > ${DEGRADED_SHARE} * (succeeded + failed) then 'degraded'
      else 'healthy' end as state
    from (
      select webhooks.id, enabled, webhook_health.disabled_at as disabled_by_service_at, last_attempt_at,
        last_outcome, last_status, last_success_at, failures, failing_since,
        (select sum(succeeded) ${lastHour}) as succeeded, (select sum(failed) ${lastHour}) as failed
      from webhooks left join webhook_health on webhook_health.webhook_id = webhooks.id
      where deleted_at is null and ${condition}
    ) as found`
  const hourAgo = now.getTime() - HOUR_MS
  return { text, bindings: [now.getTime() - DAY_MS, hourAgo, hourAgo, ...conditionBindings] }
}

function findStates(scope: Scope, webhookIds: string[], now: Date): Promise<StateRow[]> {
  const isWanted = `account_id = ? and webhooks.id in (${webhookIds.map(() => '?').join(', ')})`
  const { text, bindings } = statesQuery(isWanted, [scope.accountId, ...webhookIds], now)
  return select<StateRow>(scope.sql, text, bindings)
}

function stateFromRow(row: StateRow) {
  const { state, last_attempt_at: at, last_outcome: outcome, last_status: status } = row
  return {
    state,
    isDisabledByService: state === 'disabled' && row.disabled_by_service_at !== null,
    lastAttempt: at === null || outcome === null ? null : { at, outcome, status },
    lastSuccessAt: row.last_success_at,
    failures: row.failures ?? 0,
    failingSince: row.failing_since,
    lastHour: { succeeded: Number(row.succeeded), failed: Number(row.failed) },
  }
}

function firstHour(now: Date): number {
  return now.getTime() - (now.getTime() % HOUR_MS) - (HOURS - 1) * HOUR_MS
}

/** The rows of the last 24 hours: one for each webhook and each hour in which it had attempts. */
function hourRows({ sql }: Scope, webhookIds: string[], now: Date) {
  return sql('attempt_counts')
    .whereIn('webhook_id', webhookIds)
    .where({ span_ms: HOUR_MS })
    .where('starts_at', '>=', firstHour(now))
}

async function countHours(
  scope: Scope,
  webhookIds: string[],
  now: Date,
): Promise<Map<string, WebhookHealth['hours']>> {
  const hours = new Map(
    webhookIds.map((id) => [
      id,
      Array.from({ length: HOURS }, (_, hour) => ({
        startsAt: firstHour(now) + hour * HOUR_MS,
        succeeded: 0,
        failed: 0,
      })),
    ]),
  )
  const rows: (AttemptCounts & { webhook_id: string; starts_at: number })[] = await hourRows(
    scope,
    webhookIds,
    now,
  ).select('webhook_id', 'starts_at', 'succeeded', 'failed')
  for (const { webhook_id, starts_at, succeeded, failed } of rows) {
    const hour = hours.get(webhook_id)?.[(starts_at - firstHour(now)) / HOUR_MS]
    if (hour) Object.assign(hour, { succeeded, failed })
  }
  return hours
}

/** The p95 of each webhook with attempts, in milliseconds. */
async function findDurations(
  scope: Scope,
  webhookIds: string[],
  now: Date,
): Promise<Map<string, number>> {
  const sums = binColumns.map((column) => `sum(${column}) as ${column}`).join(', ')
  const rows: ({ webhook_id: string } & Record<string, number>)[] = await hourRows(
    scope,
    webhookIds,
    now,
  )
    .groupBy('webhook_id')
    .select('webhook_id', scope.sql.raw(sums))
  return new Map(
    rows.map((row) => [
      row.webhook_id,
      percentile(
        toBins((column) => Number(row[column])),
        0.95,
      ),
    ]),
  )
}

function sum(counts: AttemptCounts[], name: keyof AttemptCounts): number {
  return counts.reduce((total, count) => total + count[name], 0)
}

const UNFINISHED_STATES = ['retrying', 'pending'] as const
type UnfinishedState = (typeof UNFINISHED_STATES)[number]

async function countUndelivered(
  scope: Scope,
  webhookIds: string[],
  now: Date,
): Promise<Map<string, Undelivered>> {
  const countedUpTo = Math.min(
    MAX_ROWS_READ_PER_WEBHOOK,
    Math.ceil(MAX_ROWS_READ / webhookIds.length),
  )
  const inState = (state: UnfinishedState | 'failed'): string =>
    `from deliveries
     where deliveries.account_id = webhooks.account_id and webhook_id = webhooks.id
       and ${undeliveredCondition(scope, state)} and event_type <> '${TEST_EVENT}'`
  // Without an order, so that PostgreSQL stops at the limit instead of sorting all rows.
  const counted = (state: UnfinishedState | 'failed', more = ''): string =>
    `(select count(*) from (
       select 1 as one ${inState(state)}${more} limit ${countedUpTo}
     ) as bounded) as ${state}`
  const oldest = (state: UnfinishedState): string =>
    `(select created_at ${inState(state)} order by id limit 1) as oldest_${state}`
  const columns = [
    counted('failed', ' and id >= ?'),
    ...UNFINISHED_STATES.map((state) => counted(state)),
    ...UNFINISHED_STATES.map(oldest),
  ]
  const rows = await select<
    { webhook: string } & Record<UnfinishedState | 'failed', number> &
      Record<`oldest_${UnfinishedState}`, number | null>
  >(
    scope.sql,
    `select input.webhook, ${columns.join(', ')}
     from ${jsonRows(scope.dialect, { webhook: 'uuid' })}
     join webhooks on webhooks.id = input.webhook and webhooks.account_id = ?`,
    [
      lowestIdAt(now.getTime() - DAY_MS),
      JSON.stringify(webhookIds.map((webhook) => ({ webhook }))),
      scope.accountId,
    ],
  )
  return new Map(
    rows.map(({ webhook, failed, retrying, pending, oldest_retrying, oldest_pending }) => {
      const waiting = [oldest_retrying, oldest_pending].filter((at) => at !== null)
      return [
        webhook,
        {
          countedUpTo,
          failed: Number(failed),
          retrying: Number(retrying),
          pending: Number(pending),
          oldestWaitingSince: waiting.length === 0 ? null : Math.min(...waiting),
        },
      ]
    }),
  )
}
