/** Counts of attempts per 5 minutes and per hour, and the outage of each webhook. The health of
 *  webhooks is computed from these, because reading the attempts themselves would be too slow. */
import type { Outcome } from './attempt.ts'
import { Counts, type CountTable } from './counts.ts'
import { jsonRows } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import { binColumn, binColumns } from './duration-bins.ts'
import { type RemovalRun, removeRows } from './removal-run.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from './time-units.ts'

export const SHORT_SPAN_MS = 5 * MINUTE_MS
/** How long a count is kept. A count of an hour may begin before the last 24 hours and end in
 *  them. */
const KEPT_MS = DAY_MS + HOUR_MS
/** At most this much of the time between two failed attempts counts as outage. It is the longest
 *  default delay between attempts, so a jump of the clock or a pause of deliveries adds no more. */
const MAX_GAP_MS = DAY_MS

/** An attempt that has ended. Test events are not counted. */
export interface CountedAttempt {
  accountId: string
  webhookId: string
  /** Epoch milliseconds. */
  endedAt: number
  durationMs: number
  outcome: Outcome
  /** Null: no response. */
  status: number | null
}

const COUNTS: CountTable = {
  name: 'attempt_counts',
  key: { webhook_id: 'uuid', span_ms: 'integer', starts_at: 'bigint' },
  counts: ['succeeded', 'failed', ...binColumns],
}

/** Counts attempts, which must be sorted by `endedAt`. A webhook that was removed gets no
 *  outage. */
export async function countAttempts(trx: Trx, attempts: CountedAttempt[]): Promise<void> {
  const counts = new Counts(COUNTS)
  const outages: OutageRow[] = []
  for (const [webhookId, ofWebhook] of Map.groupBy(attempts, (attempt) => attempt.webhookId)) {
    const last = ofWebhook.at(-1)
    if (last) outages.push(outageAfter(last, ofWebhook))
    for (const spanMs of [SHORT_SPAN_MS, HOUR_MS]) {
      const startOfSpan = ({ endedAt }: CountedAttempt): number => endedAt - (endedAt % spanMs)
      for (const [startsAt, ofSpan] of Map.groupBy(ofWebhook, startOfSpan))
        counts.increment(
          { webhook_id: webhookId, span_ms: spanMs, starts_at: startsAt },
          ofSpan.flatMap(({ outcome, durationMs }) => [
            outcome === 'success' ? 'succeeded' : 'failed',
            binColumn(durationMs),
          ]),
        )
    }
  }
  await storeOutages(trx, outages)
  await counts.store(trx)
}

const OUTAGE_COLUMNS = {
  account_id: 'uuid',
  webhook_id: 'uuid',
  last_attempt_at: 'bigint',
  last_outcome: 'text',
  last_status: 'integer',
  last_success_at: 'bigint',
  failures: 'integer',
  failing_since: 'bigint',
  failing_until: 'bigint',
  failing_ms: 'bigint',
}

interface OutageRow {
  account_id: string
  webhook_id: string
  last_attempt_at: number
  last_outcome: Outcome
  last_status: number | null
  last_success_at: number | null
  /** Failed attempts after the last success. */
  failures: number
  failing_since: number | null
  failing_until: number | null
  failing_ms: number
}

/** The outage of a webhook, computed from these attempts alone. `last`: the last of them. */
function outageAfter(last: CountedAttempt, attempts: CountedAttempt[]): OutageRow {
  const lastSuccess = attempts.findLastIndex(({ outcome }) => outcome === 'success')
  const failures = attempts.slice(lastSuccess + 1)
  const since = failures[0]?.endedAt ?? null
  const until = failures.at(-1)?.endedAt ?? null
  return {
    account_id: last.accountId,
    webhook_id: last.webhookId,
    last_attempt_at: last.endedAt,
    last_outcome: last.outcome,
    last_status: last.status,
    last_success_at: attempts[lastSuccess]?.endedAt ?? null,
    failures: failures.length,
    failing_since: since,
    failing_until: until,
    failing_ms: Math.min(MAX_GAP_MS, Math.max(0, (until ?? 0) - (since ?? 0))),
  }
}

/** Workers may add to the same outage at once: the time that their attempts have in common counts
 *  only once. */
async function storeOutages({ dialect, sql }: Trx, rows: OutageRow[]): Promise<void> {
  const columns = Object.keys(OUTAGE_COLUMNS).filter((column) => column !== 'account_id')
  // From the last stored failure to the last new one. Without a stored failure, from the first new
  // one.
  const gap = 'excluded.failing_until - coalesce(stored.failing_until, excluded.failing_since)'
  // If no new attempt is a success, these columns continue the stored outage. Otherwise their new
  // values replace the stored ones.
  const continued: Record<string, string> = {
    last_success_at: 'stored.last_success_at',
    failures: 'stored.failures + excluded.failures',
    failing_since: 'coalesce(stored.failing_since, excluded.failing_since)',
    failing_until: `case when stored.failing_until > excluded.failing_until
      then stored.failing_until else excluded.failing_until end`,
    failing_ms: `stored.failing_ms +
      case when ${gap} < 0 then 0 when ${gap} > ${MAX_GAP_MS} then ${MAX_GAP_MS} else ${gap} end`,
  }
  const changes = columns.slice(1).map((column) =>
    column in continued
      ? `${column} = case when excluded.last_success_at is null
           then ${continued[column]} else excluded.${column} end`
      : `${column} = excluded.${column}`,
  )
  await sql.raw(
    `insert into webhook_health as stored (${columns.join(', ')})
     select ${columns.map((column) => `input.${column}`).join(', ')}
     from ${jsonRows(dialect, OUTAGE_COLUMNS)}
     join webhooks on webhooks.account_id = input.account_id and webhooks.id = input.webhook_id
     where true
     order by input.webhook_id
     on conflict (webhook_id) do update set ${changes.join(', ')}`,
    [JSON.stringify(rows)],
  )
}

export function removeOldAttemptCounts(run: RemovalRun): Promise<void> {
  const until = run.time.createdBefore(KEPT_MS)
  return removeRows(run, {
    table: COUNTS.name,
    key: Object.keys(COUNTS.key),
    condition: (rows) => rows.where('starts_at', '<', until),
  })
}
