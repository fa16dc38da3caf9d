/** The clock of a server. The server reads the time regularly, and stores a mark of it every minute
 *  and when the clock has jumped: records/deletion-time.ts decides by the marks which rows may be
 *  deleted by their age. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Clock } from '../records/database/clock.ts'
import { errorCode } from '../records/database/errors.ts'
import type { Db } from '../records/database/open.ts'
import {
  type ClockSpan,
  type DeletionTime,
  doubtLeftMs,
  findDeletionTime,
  MAX_STEP_MS,
  markTime,
} from '../records/deletion-time.ts'
import { useClockForIds } from '../records/ids.ts'
import { RunLoop } from '../runtime/run-loop.ts'

/** How often the time is read. In embedded mode this needs no query. */
const READ_EVERY_MS = { postgres: 10_000, sqlite: 1_000 }
const MARK_EVERY_MS = 60_000
/** A deletion does not wait longer for the clock: the next run tries again. */
const MAX_READ_MS = 5_000
/** A node logs a warning when its own clock differs from that of PostgreSQL by more than this. */
const MAX_OFFSET_MS = 1_000
const HOUR_MS = 60 * 60_000

/** Reads the time and stores a mark, at once and then regularly. `now` replaces the clock of the
 *  database. Throws when the first reading fails, and when SQLite is read-only: `muster serve`
 *  explains these errors. Only logs other failures. */
export async function startClock(db: Db, log: Logger, now?: () => Date): Promise<ServerClock> {
  const clock = await Clock.open(db, now)
  if (now === undefined) useClockForIds(clock.now)
  const serverClock = new ServerClock(db, log, clock)
  await serverClock.start()
  return serverClock
}

export class ServerClock {
  readonly #db: Db
  readonly #log: Logger
  readonly #clock: Clock
  /** The checks run one after the other. All that wait for one share it. */
  readonly #checks = new RunLoop(
    () => this.#check(),
    (error) => this.#reportFailure(error),
  )
  readonly #stopping = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #spans: ClockSpan[] = []
  /** The time of the last mark, by the monotonic clock. Undefined until the first mark. */
  #markedAtMs: number | undefined
  #hasFailed = false
  #loggedOffsetMs = 0

  constructor(db: Db, log: Logger, clock: Clock) {
    this.#db = db
    this.#log = log
    this.#clock = clock
  }

  async start(): Promise<void> {
    await this.#check().catch((error: unknown) => {
      if (errorCode(error).startsWith('SQLITE_READONLY')) throw error
      this.#reportFailure(error)
    })
    this.#timer = setInterval(this.#checks.wake, READ_EVERY_MS[this.#db.dialect]).unref()
  }

  get now(): () => Date {
    return this.#clock.now
  }

  /** Reads the time now, or once more after the current reading. Only logs a failure. */
  readonly read = (): Promise<void> => this.#checks.run()

  /** How far the clock of this machine is ahead of `now`. */
  offsetMs(): number {
    return this.#clock.offsetMs()
  }

  /** Whether the clock may be wrong. True until the first mark: the clock may have jumped while no
   *  node ran. */
  isInDoubt(): boolean {
    return this.#markedAtMs === undefined || doubtLeftMs(this.#spans) > 0
  }

  /** The time for deletions by age. Undefined: nothing may be deleted now. Call it at the start of
   *  each deletion by age, and use its result until the deletion ends. */
  async findDeletionTime(): Promise<DeletionTime | undefined> {
    const { signal } = this.#stopping
    const limit = delay(MAX_READ_MS, false, { signal, ref: false }).catch(() => false)
    const isRead = await Promise.race([this.#checks.run().then(() => !this.#hasFailed), limit])
    return isRead && !signal.aborted ? findDeletionTime(this.#db.read, this.now()) : undefined
  }

  /** Does not wait for the current reading, whose result no longer matters. */
  stop(): void {
    clearInterval(this.#timer)
    this.#stopping.abort()
    void this.#checks.stop()
  }

  /** Reads the time. Stores a mark of it if one is due, or the clock has jumped. After a jump, the
   *  new time counts only once its mark is stored, so that a span covers the time of every row. */
  async #check(): Promise<void> {
    this.#hasFailed = true
    await this.#clock.read(async (differenceMs, now) => {
      const hasJumped = Math.abs(differenceMs) > MAX_STEP_MS
      if (hasJumped || this.#isMarkDue()) await this.#mark(now, hasJumped)
    })
    this.#hasFailed = false
    this.#reportOffset()
  }

  #isMarkDue(): boolean {
    return this.#markedAtMs === undefined || performance.now() - this.#markedAtMs >= MARK_EVERY_MS
  }

  async #mark(now: Date, hasJumped: boolean): Promise<void> {
    const atMs = performance.now()
    const elapsedMs = atMs - (this.#markedAtMs ?? atMs)
    const before = this.#spans
    this.#spans = await markTime(this.#db, { now, elapsedMs, hasJumped })
    this.#markedAtMs = atMs
    this.#reportDoubt(before)
  }

  #reportFailure(error: unknown): void {
    if (this.#stopping.signal.aborted) return
    this.#log.warn(
      { err: error },
      'The time could not be read or marked. No row is deleted by its age meanwhile.',
    )
  }

  /** `before` are the spans before the last mark. */
  #reportDoubt(before: ClockSpan[]): void {
    const leftMs = doubtLeftMs(this.#spans)
    const wasInDoubt = doubtLeftMs(before) > 0
    const [previous, newest] = this.#spans.slice(-2)
    if (leftMs === 0) {
      if (wasInDoubt)
        this.#log.info('The clock is no longer in doubt: outdated rows are deleted again')
      return
    }
    const wasReported = wasInDoubt && before.at(-1)?.number === newest?.number
    if (wasReported) return
    this.#log.warn(
      {
        last_mark: new Date(previous?.marked_at ?? 0),
        now: new Date(newest?.marked_at ?? 0),
        hours_left: Math.ceil(leftMs / HOUR_MS),
      },
      'The clock is in doubt: it has jumped, or the service was stopped for more than a day. ' +
        'No row is deleted by its age until the service has run for 24 hours. ' +
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
