/** The clock of a server, and whether rows may be deleted by their age. The server regularly stores
 *  a mark: the time that it has read. Marks show jumps of the clock, which divide the time into
 *  spans: see records/clock-spans.ts. */
import type { Logger } from 'pino'
import {
  type ClockSpan,
  DeletionTime,
  doubtLeftMs,
  MAX_STEP_MS,
  markTime,
} from '../records/clock-spans.ts'
import { Clock } from '../records/database/clock.ts'
import { errorCode } from '../records/database/errors.ts'
import type { Db } from '../records/database/open.ts'
import { useClockForIds } from '../records/ids.ts'

/** How often the time is read. In embedded mode this needs no query. */
const READ_EVERY_MS = { postgres: 10_000, sqlite: 1_000 }
const MARK_EVERY_MS = 60_000
/** A node logs a warning when its own clock differs from that of PostgreSQL by more than this. */
const MAX_OFFSET_MS = 1_000
const HOUR_MS = 60 * 60_000

export interface ServerClock {
  now(): Date
  /** Reads the time now. Calls during a reading share it. Only logs a failure. */
  read(): Promise<void>
  /** How far the clock of this machine is ahead of `now`. */
  offsetMs(): number
  /** Whether the clock may be wrong. */
  isInDoubt(): boolean
  /** The time for deletions by age. Undefined: the clock is in doubt, and nothing may be deleted.
   *  Call it at the start of each deletion by age, and use its result until the deletion ends. */
  findDeletionTime(): Promise<DeletionTime | undefined>
  stop(): Promise<void>
}

/** Reads the time and stores marks, at once and then regularly. `now` replaces the clock of the
 *  database. Throws when the first reading fails, and when SQLite is read-only: `muster serve`
 *  explains these errors. Only logs other failures. */
export async function startClock(db: Db, log: Logger, now?: () => Date): Promise<ServerClock> {
  const clock = await Clock.open(db, now)
  if (now === undefined) useClockForIds(clock.now)
  const watch = new ClockWatch(db, log, clock)
  const reportFailure = (error: unknown): void =>
    log.warn(
      { err: error },
      'The time could not be read or marked. No row is deleted by its age meanwhile.',
    )
  await watch.check().catch((error: unknown) => {
    if (errorCode(error).startsWith('SQLITE_READONLY')) throw error
    reportFailure(error)
  })
  let reading: Promise<void> | undefined
  const read = (): Promise<void> => {
    reading ??= watch
      .check()
      .catch(reportFailure)
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  const timer = setInterval(read, READ_EVERY_MS[db.dialect]).unref()
  return {
    now: clock.now,
    read,
    offsetMs: () => clock.offsetMs(),
    isInDoubt: () => watch.isInDoubt,
    async findDeletionTime() {
      await watch.check({ mustMark: true })
      return watch.isInDoubt ? undefined : new DeletionTime(clock.now(), watch.spans)
    },
    async stop() {
      clearInterval(timer)
      await watch.finish()
    },
  }
}

class ClockWatch {
  readonly #db: Db
  readonly #log: Logger
  readonly #clock: Clock
  spans: ClockSpan[] = []
  /** The time of the last mark, by the monotonic clock. Undefined until the first mark. */
  #markedAtMs: number | undefined
  #loggedOffsetMs = 0
  #lastCheck: Promise<void> = Promise.resolve()

  constructor(db: Db, log: Logger, clock: Clock) {
    this.#db = db
    this.#log = log
    this.#clock = clock
  }

  /** True until the first mark, because the clock may have jumped while no node ran. */
  get isInDoubt(): boolean {
    return this.#markedAtMs === undefined || doubtLeftMs(this.spans) > 0
  }

  /** Reads the time. Stores a mark of it if `mustMark` is true, a mark is due, or the clock has
   *  jumped. After a jump, the new time counts only once its mark is stored, so that a span covers
   *  the time of every row. */
  check({ mustMark = false } = {}): Promise<void> {
    // Checks run one after the other, also after one has failed.
    this.#lastCheck = this.#lastCheck
      .catch(() => undefined)
      .then(() =>
        this.#clock.read(async (differenceMs, now) => {
          const hasJumped = Math.abs(differenceMs) > MAX_STEP_MS
          const isMarkNeeded = hasJumped || mustMark || this.#isMarkDue()
          if (isMarkNeeded) await this.#mark(now, hasJumped)
        }),
      )
      .then(() => this.#reportOffset())
    return this.#lastCheck
  }

  async finish(): Promise<void> {
    await this.#lastCheck.catch(() => undefined)
  }

  #isMarkDue(): boolean {
    return this.#markedAtMs === undefined || performance.now() - this.#markedAtMs >= MARK_EVERY_MS
  }

  async #mark(now: Date, hasJumped: boolean): Promise<void> {
    const atMs = performance.now()
    const elapsedMs = this.#markedAtMs === undefined ? undefined : atMs - this.#markedAtMs
    const before = this.spans
    this.spans = await markTime(this.#db, { now, elapsedMs, hasJumped })
    this.#markedAtMs = atMs
    this.#reportDoubt(before)
  }

  /** `before` are the spans before the last mark. */
  #reportDoubt(before: ClockSpan[]): void {
    const leftMs = doubtLeftMs(this.spans)
    const wasInDoubt = doubtLeftMs(before) > 0
    const [previous, newest] = this.spans.slice(-2)
    if (leftMs === 0) {
      if (wasInDoubt)
        this.#log.info('The clock is no longer in doubt: outdated rows are deleted again')
      return
    }
    const wasReported = wasInDoubt && before.at(-1)?.number === newest?.number
    if (wasReported) return
    this.#log.warn(
      {
        last_mark: new Date(previous?.markedAt ?? 0),
        now: new Date(newest?.markedAt ?? 0),
        hours_left: Math.ceil(leftMs / HOUR_MS),
      },
      'The clock is in doubt: it has jumped, or the service was stopped for more than an hour. ' +
        'No row is deleted by its age until the clock has run steadily for 24 hours. ' +
        'If the time is right, run "muster doctor --confirm-clock" to end the doubt now.',
    )
  }

  #reportOffset(): void {
    const offsetMs = this.#db.dialect === 'postgres' ? this.#clock.offsetMs() : 0
    if (Math.abs(offsetMs - this.#loggedOffsetMs) <= MAX_OFFSET_MS) return
    this.#loggedOffsetMs = offsetMs
    const fields = { offset_seconds: Math.round(offsetMs) / 1_000 }
    if (Math.abs(offsetMs) > MAX_OFFSET_MS)
      this.#log.warn(
        fields,
        'The clock of this node differs from that of PostgreSQL, which the service uses. ' +
          'Synchronise both.',
      )
    else this.#log.info(fields, 'The clock of this node agrees with that of PostgreSQL again')
  }
}
