/** Counts of requests per minute and hour, updated when requests are logged: reading a million rows
 *  would be too slow. */
import { insertText } from '../database/inserts.ts'
import type { Sql } from '../database/statements.ts'
import { daysBefore, type RemovalRun, removeRows } from '../removal-run.ts'

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS

export interface CountedRequest {
  accountId: string
  operationId: string | null
  status: number
  durationMs: number
  at: number
}

/** Durations are counted in bins: the first below 1 ms, the last from 10 s, and between them each
 *  is 16 % wider than the previous one. */
export const BINS = 64
const LAST_BIN_FROM_MS = 10_000
const GROWTH = Math.log(LAST_BIN_FROM_MS) / (BINS - 2)

export function toBin(durationMs: number): number {
  if (durationMs < 1) return 0
  return durationMs >= LAST_BIN_FROM_MS ? BINS - 1 : 1 + Math.floor(Math.log(durationMs) / GROWTH)
}

/** The limits of a bin, in milliseconds. */
export function binEdges(bin: number): [low: number, high: number] {
  if (bin === 0) return [0, 1]
  return [Math.exp((bin - 1) * GROWTH), Math.exp(bin * GROWTH)]
}

export const binColumns = Array.from({ length: BINS }, (_, bin) => `d${bin}`)
export const outcomes = ['ok', 'client_errors', 'server_errors'] as const

export function toOutcome(status: number): (typeof outcomes)[number] {
  return status < 400 ? 'ok' : status < 500 ? 'client_errors' : 'server_errors'
}

/** A table of counts. They are added up by the keys. */
export interface CountTable {
  name: string
  keys: string[]
  counts: string[]
}

const MINUTES: CountTable = {
  name: 'request_minutes',
  keys: ['account_id', 'minute'],
  counts: [...outcomes, ...binColumns],
}
const COUNTS: CountTable = {
  name: 'request_counts',
  keys: ['account_id', 'span_ms', 'starts_at', 'operation_id', 'status'],
  counts: ['requests'],
}

/** Call it in the transaction that logs the requests. */
export async function countRequests(sql: Sql, requests: CountedRequest[]): Promise<void> {
  const minutes = new Map<string, number[]>()
  const counts = new Map<string, number[]>()
  for (const { accountId, operationId, status, durationMs, at } of requests) {
    const minute = findOrAddRow(minutes, [accountId, at - (at % MINUTE_MS)], MINUTES)
    increment(minute, outcomes.indexOf(toOutcome(status)))
    increment(minute, outcomes.length + toBin(durationMs))
    for (const spanMs of [MINUTE_MS, HOUR_MS])
      increment(
        findOrAddRow(
          counts,
          [accountId, spanMs, at - (at % spanMs), operationId ?? '', status],
          COUNTS,
        ),
        0,
      )
  }
  await addCounts(sql, MINUTES, minutes)
  await addCounts(sql, COUNTS, counts)
}

export function findOrAddRow(
  rows: Map<string, number[]>,
  keys: (string | number)[],
  { counts }: CountTable,
): number[] {
  const name = JSON.stringify(keys)
  const row = rows.get(name) ?? new Array<number>(counts.length).fill(0)
  rows.set(name, row)
  return row
}

export function increment(row: number[], index: number): void {
  row[index] = (row[index] ?? 0) + 1
}

/** SQLite accepts at most 32,766 in a statement. */
const MAX_VARIABLES = 10_000

/** Adds the rows of `findOrAddRow` to the stored counts. */
export async function addCounts(
  sql: Sql,
  table: CountTable,
  counted: Map<string, number[]>,
): Promise<void> {
  const { name, keys, counts } = table
  // Sorted, so that two nodes that update the same rows cannot deadlock.
  const rows = [...counted]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, values]) => [...JSON.parse(key), ...values])
  const width = keys.length + counts.length
  const size = Math.floor(MAX_VARIABLES / width)
  for (let from = 0; from < rows.length; from += size) {
    const batch = rows.slice(from, from + size)
    const statement = sql.raw(upsertText(table, batch.length), batch.flat())
    // Most batches have one row, so PostgreSQL plans that statement once per connection.
    await (batch.length === 1 ? statement.options({ name: `add_${name}` }) : statement)
  }
}

function upsertText({ name, keys, counts }: CountTable, rows: number): string {
  const sums = counts.map((count) => `${count}=c.${count}+excluded.${count}`).join(',')
  return `${insertText(`${name} as c`, [...keys, ...counts], rows)}
    on conflict (${keys.join(',')}) do update set ${sums}`
}

/** Removes the minutes that ended before the oldest request of the log. */
export function removeOldMinutes(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.requestLog) - MINUTE_MS
  return removeRows(run, {
    table: MINUTES.name,
    key: MINUTES.keys,
    condition: (rows) => rows.where('minute', '<=', until),
  })
}

/** Removes the minutes and hours that ended before the oldest request of the log. */
export function removeOldCounts(run: RemovalRun): Promise<void> {
  const until = daysBefore(run, run.retention.requestLog)
  return removeRows(run, {
    table: COUNTS.name,
    key: COUNTS.keys,
    // The first condition finds the rows in the index.
    condition: (rows) =>
      rows
        .where('starts_at', '<=', until - MINUTE_MS)
        .whereRaw('starts_at + span_ms <= ?', [until]),
  })
}
