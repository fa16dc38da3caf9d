/** Which rows are old enough to be deleted. A clock alone makes no row old, because it may be wrong
 *  now, and may have been wrong when it dated the row. A row is older than an age only if
 *
 *  1. its time is more than that age before the time of the clock, and
 *  2. its time is before every time that the clock has shown in the last `age` of seen time.
 *
 *  Seen time is the time for which nodes have run, by the monotonic clock. A stop of up to a day is
 *  seen, too, once nodes have run for a day since. A longer stop, and a jump of the clock, are not:
 *  whatever the clock shows, a row keeps its age in seen time.
 *
 *  Nodes mark the time regularly (`markTime`). The marks divide the time into spans: a new span
 *  begins when the clock jumps, and when a node starts and finds the last mark too far away. Until
 *  nodes have run for a day in the new span, the clock is in doubt, and nothing is deleted by its
 *  age: an operator can correct the clock, or confirm it (`confirmClock`). */
import type { Db } from './database/open.ts'
import { type Sql, select } from './database/statements.ts'
import { type Trx, transaction } from './database/transaction.ts'
import { DAY_MS } from './time-units.ts'

/** A larger step against the monotonic clock is a jump. */
export const MAX_STEP_MS = 60_000
/** When the last mark is older at a start, the time between is not seen time, and the clock is in
 *  doubt. */
const MAX_STOP_MS = DAY_MS
/** PostgreSQL advisory lock: any number that nothing else locks. */
const LOCK_KEY = 7_305_518_843

/** A row of `clock_spans`. Times are epoch milliseconds. */
export interface ClockSpan {
  number: number
  /** The lowest time that was marked in the span. */
  starts_at: number
  /** The time of the last mark. */
  marked_at: number
  /** For how long nodes ran in the span. */
  steady_ms: number
  /** The part of the span that is seen time. */
  seen_ms: number
  /** The stops that become seen time when `steady_ms` is next a whole number of days. */
  stopped_ms: number
}

/** Oldest first. */
export function listClockSpans(sql: Sql): Promise<ClockSpan[]> {
  return select<ClockSpan>(sql, 'select * from clock_spans order by number', [])
}

/** The first span is trusted at once, because there are no earlier rows to lose. */
const isTrusted = ({ number, steady_ms }: ClockSpan): boolean => number === 1 || steady_ms >= DAY_MS

/** For how long nodes must still run. 0: the clock is not in doubt. */
export function doubtLeftMs(spans: ClockSpan[]): number {
  const newest = spans.at(-1)
  return newest === undefined || isTrusted(newest) ? 0 : DAY_MS - newest.steady_ms
}

/** Undefined: the clock is in doubt, and nothing may be deleted by its age. */
export async function findDeletionTime(sql: Sql, now: Date): Promise<DeletionTime | undefined> {
  const spans = await listClockSpans(sql)
  return doubtLeftMs(spans) > 0 ? undefined : new DeletionTime(now, spans)
}

/** Says which rows are old enough to be deleted. */
export class DeletionTime {
  /** Epoch milliseconds. */
  readonly now: number
  readonly #spans: ClockSpan[]

  constructor(now: Date, spans: ClockSpan[] = []) {
    this.now = now.getTime()
    this.#spans = spans
  }

  /** Rows with times before this one are older than `ageMs`. */
  createdBefore(ageMs: number): number {
    let limit = this.now - ageMs
    // Goes back in seen time, from the last mark.
    let leftMs = ageMs
    for (const { starts_at, seen_ms } of this.#spans.toReversed()) {
      limit = Math.min(limit, starts_at + Math.max(0, seen_ms - leftMs))
      leftMs -= seen_ms
      if (leftMs <= 0) break
    }
    return limit
  }

  /** Rows that expire at or before this time are outdated. They were created `lifetimeMs` before
   *  they expire. `delayMs` keeps them for that long after they have expired. */
  expiredUntil(lifetimeMs: number, delayMs = 0): number {
    return this.createdBefore(lifetimeMs + delayMs) + lifetimeMs
  }
}

interface Mark {
  now: Date
  /** By the monotonic clock, since the last mark of this process. 0 for its first mark. */
  elapsedMs: number
  /** The clock has jumped since the last mark of this process. */
  hasJumped: boolean
}

/** Marks the time, and returns all spans. */
export function markTime(db: Db, mark: Mark): Promise<ClockSpan[]> {
  return transaction(db, async (trx) => {
    await lockSpans(trx)
    return storeMark(trx.sql, mark)
  })
}

/** Ends the doubt, because the operator says that the time is right. It makes no row older: the clock
 *  may have been wrong before. Returns the spans. */
export function confirmClock(db: Db, now: Date): Promise<ClockSpan[]> {
  return transaction(db, async (trx) => {
    await lockSpans(trx)
    const spans = await storeMark(trx.sql, { now, elapsedMs: 0, hasJumped: false })
    const newest = spans.at(-1)
    if (newest !== undefined && !isTrusted(newest))
      await updateSpan(trx.sql, { ...newest, steady_ms: DAY_MS })
    return listClockSpans(trx.sql)
  })
}

/** Locks until the end of the transaction: otherwise two nodes would both begin a span. SQLite has
 *  one writer. */
async function lockSpans({ dialect, sql }: Trx): Promise<void> {
  if (dialect === 'postgres') await sql.raw('select pg_advisory_xact_lock(?)', [LOCK_KEY])
}

async function storeMark(sql: Sql, mark: Mark): Promise<ClockSpan[]> {
  const newest = (await listClockSpans(sql)).at(-1)
  if (newest !== undefined && !beginsSpan(newest, mark))
    await updateSpan(sql, continueSpan(newest, mark))
  else await insertSpan(sql, mark, newest)
  return listClockSpans(sql)
}

async function insertSpan(sql: Sql, mark: Mark, previous: ClockSpan | undefined): Promise<void> {
  const at = mark.now.getTime()
  const isAfterStop = mark.elapsedMs === 0 && at > (previous?.marked_at ?? at)
  // A stop during the doubt does not prolong it.
  const steady_ms = previous && isAfterStop && !isTrusted(previous) ? previous.steady_ms : 0
  const number = (previous?.number ?? 0) + 1
  const times = { starts_at: at, marked_at: at }
  await sql('clock_spans').insert({ number, ...times, steady_ms, seen_ms: 0, stopped_ms: 0 })
  // Nothing is deleted until nodes have run for another day.
  if (previous && isTrusted(previous)) await updateSpan(sql, withAllStops(previous))
}

/** Makes all stops in the span seen time. */
const withAllStops = (span: ClockSpan): ClockSpan => ({
  ...span,
  seen_ms: span.marked_at - span.starts_at,
  stopped_ms: 0,
})

/** While the clock is in doubt, a jump ahead by up to a day does not begin another span: a machine
 *  that is suspended every night would never end the doubt. */
function beginsSpan(newest: ClockSpan, { now, elapsedMs, hasJumped }: Mark): boolean {
  const sinceMarkMs = now.getTime() - newest.marked_at
  if (sinceMarkMs < -MAX_STEP_MS || sinceMarkMs > elapsedMs + MAX_STOP_MS) return true
  return hasJumped && isTrusted(newest)
}

function continueSpan(span: ClockSpan, { now, elapsedMs }: Mark): ClockSpan {
  const marked_at = now.getTime()
  const starts_at = Math.min(span.starts_at, marked_at)
  // Several nodes mark the same span, and each adds only the time since the last mark of any node.
  const ranMs = Math.round(Math.max(0, Math.min(marked_at - span.marked_at, elapsedMs)))
  const steady_ms = span.steady_ms + ranMs
  const seen_ms = span.seen_ms + ranMs
  const continued = { ...span, starts_at, marked_at, steady_ms, seen_ms }
  if (Math.floor(steady_ms / DAY_MS) === Math.floor(span.steady_ms / DAY_MS)) return continued
  // Stops since the last full day wait for the next one, so that nodes have run for a day since.
  continued.seen_ms += span.stopped_ms
  continued.stopped_ms = Math.max(0, marked_at - starts_at - continued.seen_ms)
  return continued
}

async function updateSpan(sql: Sql, { number, ...changes }: ClockSpan): Promise<void> {
  await sql('clock_spans').where({ number }).update(changes)
}
