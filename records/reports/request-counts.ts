/** Counts of requests per minute and hour, updated when requests are logged. */
import { Counts, type CountTable } from '../counts.ts'
import type { Source } from '../database/transaction.ts'
import { binColumn, binColumns } from '../duration-bins.ts'
import { daysBefore, type RemovalRun, removeRows } from '../removal-run.ts'
import { HOUR_MS, MINUTE_MS } from '../time-units.ts'

interface CountedRequest {
  accountId: string
  operationId: string | null
  status: number
  durationMs: number
  /** Epoch milliseconds. */
  at: number
}

export type StatusColumn = 'ok' | 'client_errors' | 'server_errors'

export function statusColumn(status: number): StatusColumn {
  if (status < 400) return 'ok'
  return status < 500 ? 'client_errors' : 'server_errors'
}

const MINUTES: CountTable = {
  name: 'request_minutes',
  key: { account_id: 'uuid', minute: 'bigint' },
  counts: ['ok', 'client_errors', 'server_errors', ...binColumns],
}
const COUNTS: CountTable = {
  name: 'request_counts',
  key: {
    account_id: 'uuid',
    span_ms: 'integer',
    starts_at: 'bigint',
    operation_id: 'text',
    status: 'integer',
  },
  counts: ['requests'],
}

/** Call it in the transaction that logs the requests. */
export async function countRequests(source: Source, requests: CountedRequest[]): Promise<void> {
  const minutes = new Counts(MINUTES)
  const counts = new Counts(COUNTS)
  for (const { accountId, operationId, status, durationMs, at } of requests) {
    minutes.increment({ account_id: accountId, minute: at - (at % MINUTE_MS) }, [
      statusColumn(status),
      binColumn(durationMs),
    ])
    const response = { operation_id: operationId ?? '', status }
    for (const spanMs of [MINUTE_MS, HOUR_MS])
      counts.increment(
        { account_id: accountId, span_ms: spanMs, starts_at: at - (at % spanMs), ...response },
        ['requests'],
      )
  }
  await minutes.store(source)
  await counts.store(source)
}

/** Removes the minutes that ended before the oldest request of the log. */
export function removeOldRequestMinutes(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.requestLog) - MINUTE_MS
  return removeRows(run, {
    table: MINUTES.name,
    key: Object.keys(MINUTES.key),
    condition: (rows) => rows.where('minute', '<=', until),
  })
}

/** Removes the minutes and hours that ended before the oldest request of the log. */
export function removeOldRequestCounts(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.requestLog)
  return removeRows(run, {
    table: COUNTS.name,
    key: Object.keys(COUNTS.key),
    // The first condition finds the rows in the index.
    condition: (rows) =>
      rows
        .where('starts_at', '<=', until - MINUTE_MS)
        .whereRaw('starts_at + span_ms <= ?', [until]),
  })
}
