/** Counts of requests per minute and hour, updated when requests are logged. */
import { Counts, type CountTable } from '../counts.ts'
import type { Sql } from '../database/statements.ts'
import { binColumn, binColumns } from '../duration-bins.ts'
import { daysBefore, type RemovalRun, removeRows } from '../removal-run.ts'
import { HOUR_MS, MINUTE_MS } from '../time-units.ts'

interface CountedRequest {
  accountId: string
  operationId: string | null
  status: number
  durationMs: number
  at: number
}

export type StatusColumn = 'ok' | 'client_errors' | 'server_errors'

export function statusColumn(status: number): StatusColumn {
  if (status < 400) return 'ok'
  return status < 500 ? 'client_errors' : 'server_errors'
}

const MINUTES: CountTable = {
  name: 'request_minutes',
  key: ['account_id', 'minute'],
  counts: ['ok', 'client_errors', 'server_errors', ...binColumns],
}
const COUNTS: CountTable = {
  name: 'request_counts',
  key: ['account_id', 'span_ms', 'starts_at', 'operation_id', 'status'],
  counts: ['requests'],
}

/** Call it in the transaction that logs the requests. */
export async function countRequests(sql: Sql, requests: CountedRequest[]): Promise<void> {
  const minutes = new Counts(MINUTES)
  const counts = new Counts(COUNTS)
  for (const { accountId, operationId, status, durationMs, at } of requests) {
    const minute = at - (at % MINUTE_MS)
    minutes.increment([accountId, minute], statusColumn(status), binColumn(durationMs))
    for (const spanMs of [MINUTE_MS, HOUR_MS])
      counts.increment(
        [accountId, spanMs, at - (at % spanMs), operationId ?? '', status],
        'requests',
      )
  }
  await minutes.store(sql)
  await counts.store(sql)
}

/** Removes the minutes that ended before the oldest request of the log. */
export function removeOldRequestMinutes(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.requestLog) - MINUTE_MS
  return removeRows(run, {
    table: MINUTES.name,
    key: MINUTES.key,
    condition: (rows) => rows.where('minute', '<=', until),
  })
}

/** Removes the minutes and hours that ended before the oldest request of the log. */
export function removeOldRequestCounts(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.requestLog)
  return removeRows(run, {
    table: COUNTS.name,
    key: COUNTS.key,
    // The first condition finds the rows in the index.
    condition: (rows) =>
      rows
        .where('starts_at', '<=', until - MINUTE_MS)
        .whereRaw('starts_at + span_ms <= ?', [until]),
  })
}
