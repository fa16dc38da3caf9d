import type { Db } from './open.ts'
import { select } from './statements.ts'

/** The time of PostgreSQL, in epoch milliseconds, as SQL. */
export const NOW_SQL = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** The clock of the database showed a time in this range, in epoch milliseconds, at `takenAtMs` of
 *  the monotonic clock. */
interface Reading {
  earliest: number
  latest: number
  takenAtMs: number
}

/** Reads the clock of PostgreSQL. In embedded mode, reads the clock of this machine. */
async function readTime(db: Db): Promise<Reading> {
  const startedAtMs = performance.now()
  if (db.dialect === 'sqlite') return readingSince(startedAtMs, Date.now())
  const text = 'select (extract(epoch from clock_timestamp()) * 1000)::float8 as now'
  const [row] = await select<{ now: number }>(db.read, text, [])
  if (row === undefined) throw new Error('PostgreSQL did not return its time')
  return readingSince(startedAtMs, row.now)
}

/** A reading that began at `startedAtMs` of the monotonic clock and has just returned `now`, in
 *  epoch milliseconds. The process may have paused meanwhile, so the reading is a range. */
function readingSince(startedAtMs: number, now: number): Reading {
  const takenAtMs = performance.now()
  return { earliest: now, latest: now + takenAtMs - startedAtMs, takenAtMs }
}

/** The time of the database, carried on by the monotonic clock between two readings. The clocks of
 *  nodes that share a database may be wrong, so nodes write rows with the time of the database. */
export class Clock {
  readonly #read: () => Promise<Reading>
  readonly now: () => Date
  /** The time of the database at `#takenAtMs` of the monotonic clock. */
  #timeMs = 0
  #takenAtMs = 0

  private constructor(read: () => Promise<Reading>, now?: () => Date) {
    this.#read = read
    this.now = now ?? (() => new Date(this.#timeAt(performance.now())))
  }

  /** `now` replaces the clock of the database. */
  static async open(db: Db, now?: () => Date): Promise<Clock> {
    const clock = new Clock(
      async () => (now ? readingSince(performance.now(), now().getTime()) : readTime(db)),
      now,
    )
    const { earliest, latest, takenAtMs } = await clock.#read()
    clock.#set((earliest + latest) / 2, takenAtMs)
    return clock
  }

  /** How far the clock of this machine is ahead of the time of the database. */
  offsetMs(): number {
    return Date.now() - this.now().getTime()
  }

  /** Reads the time again. Calls `accept` with the difference of the new time to the time so far,
   *  and with the new time. `now` returns the new time once `accept` has resolved. A difference
   *  below the accuracy of the reading is 0. */
  async read(accept: (differenceMs: number, now: Date) => Promise<void>): Promise<void> {
    const { earliest, latest, takenAtMs } = await this.#read()
    const expected = this.#timeAt(takenAtMs)
    const time = Math.min(Math.max(expected, earliest), latest)
    await accept(time - expected, new Date(time))
    this.#set(time, takenAtMs)
  }

  #set(timeMs: number, takenAtMs: number): void {
    this.#timeMs = timeMs
    this.#takenAtMs = takenAtMs
  }

  #timeAt(monotonicMs: number): number {
    return this.#timeMs + monotonicMs - this.#takenAtMs
  }
}
