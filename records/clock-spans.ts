/** The spans of time between jumps of the clock. Nodes mark the time regularly (`markTime`). A new
 *  span begins when the clock jumps, and when a node starts and finds the clock far from the last
 *  mark. Until nodes have run for a day in the new span, the clock is in doubt, and no row is
 *  deleted by its age. */
import type { Db } from './database/open.ts'
import { type Sql, select } from './database/statements.ts'
import { type Trx, transaction } from './database/transaction.ts'
import { DAY_MS, HOUR_MS } from './time-units.ts'

/** A larger step against the monotonic clock is a jump. */
export const MAX_STEP_MS = 60_000
/** A node begins a span when its clock at the start differs from the last mark by more than this. A
 *  deploy takes less. */
const MAX_GAP_MS = HOUR_MS
/** A span with this much running time is steady. The time is summed over restarts. */
const STEADY_MS = DAY_MS
/** PostgreSQL advisory lock: any number that nothing else locks. */
const LOCK_KEY = 7_305_518_843

export interface ClockSpan {
  number: number
  /** The lowest time that was marked in the span, in epoch milliseconds. */
  startsAt: number
  /** The time of the last mark. */
  markedAt: number
  /** For how long nodes ran in this span. */
  steadyMs: number
}

interface Row {
  number: number
  starts_at: number
  marked_at: number
  steady_ms: number
}

function fromRow(row: Row): ClockSpan {
  return {
    number: row.number,
    startsAt: row.starts_at,
    markedAt: row.marked_at,
    steadyMs: row.steady_ms,
  }
}

/** Oldest first. */
export async function listClockSpans(sql: Sql): Promise<ClockSpan[]> {
  const rows = await select<Row>(sql, 'select * from clock_spans order by number', [])
  return rows.map(fromRow)
}

/** How long the clock must still run steadily. 0: it is not in doubt. In the first span, the clock
 *  is never in doubt. */
export function doubtLeftMs(spans: ClockSpan[]): number {
  const newest = spans.at(-1)
  return newest === undefined || spans.length === 1 ? 0 : Math.max(0, STEADY_MS - newest.steadyMs)
}

/** As SQL. The same rule as `doubtLeftMs`. */
export const IS_CLOCK_IN_DOUBT = `exists (
  select 1 from clock_spans
  where number > 1 and steady_ms < ${STEADY_MS}
    and number = (select max(number) from clock_spans))`

interface Mark {
  now: Date
  /** By the monotonic clock, since the last mark of this process; undefined for its first mark. */
  elapsedMs: number | undefined
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

/** Ends the doubt, because the operator says that the time is right. Returns the spans. */
export function confirmClock(db: Db, now: Date): Promise<ClockSpan[]> {
  return transaction(db, async (trx) => {
    await lockSpans(trx)
    const spans = await storeMark(trx.sql, { now, elapsedMs: undefined, hasJumped: false })
    const newest = spans.at(-1)
    await trx.sql('clock_spans').where({ number: newest?.number }).update({ steady_ms: STEADY_MS })
    return listClockSpans(trx.sql)
  })
}

/** Locks until the end of the transaction: otherwise two nodes would both begin a span. SQLite has
 *  one writer. */
async function lockSpans({ dialect, sql }: Trx): Promise<void> {
  if (dialect === 'postgres') await sql.raw('select pg_advisory_xact_lock(?)', [LOCK_KEY])
}

async function storeMark(sql: Sql, mark: Mark): Promise<ClockSpan[]> {
  const spans = await listClockSpans(sql)
  const newest = spans.at(-1)
  const at = mark.now.getTime()
  if (newest === undefined || beginsSpan(spans, newest, mark)) {
    const number = (newest?.number ?? 0) + 1
    await sql('clock_spans').insert({ number, starts_at: at, marked_at: at, steady_ms: 0 })
  } else {
    // Several nodes mark the same span, and each adds only the time since the last mark of any
    // node.
    const ranMs = Math.round(mark.elapsedMs ?? 0)
    const addedMs = Math.max(0, Math.min(at - newest.markedAt, ranMs))
    await sql('clock_spans')
      .where({ number: newest.number })
      .update({
        starts_at: Math.min(newest.startsAt, at),
        marked_at: at,
        steady_ms: Math.min(STEADY_MS, newest.steadyMs + addedMs),
      })
  }
  return listClockSpans(sql)
}

function beginsSpan(
  spans: ClockSpan[],
  newest: ClockSpan,
  { now, elapsedMs, hasJumped }: Mark,
): boolean {
  const differenceMs = Math.abs(now.getTime() - newest.markedAt)
  const isFirstMark = elapsedMs === undefined
  if (isFirstMark) return differenceMs > MAX_GAP_MS
  // Another node may have seen the same jump before, and have begun the span.
  return hasJumped && (doubtLeftMs(spans) === 0 || differenceMs > MAX_STEP_MS)
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

  /** Rows created before this time are older than `ageMs`. In a span that never became steady, the
   *  clock may have been behind and stored times that are too early. Rows since the start of such a
   *  span stay until the next steady span has begun more than `ageMs` ago. */
  createdBefore(ageMs: number): number {
    const limit = this.now - ageMs
    const unsteady = this.#spans.filter((span) => {
      const nextSteady = this.#spans.find(
        ({ number, steadyMs }) => number > span.number && isSteady(steadyMs),
      )
      return !isSteady(span.steadyMs) && nextSteady !== undefined && nextSteady.startsAt > limit
    })
    return Math.min(limit, ...unsteady.map(({ startsAt }) => startsAt))
  }
}

function isSteady(steadyMs: number): boolean {
  return steadyMs >= STEADY_MS
}
