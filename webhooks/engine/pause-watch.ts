/** Keeps a worker from leasing attempts while deliveries are paused. */
import type { Logger } from 'pino'
import type { Db } from '../../records/database/open.ts'
import { findPausedAt, PAUSE_CHANGED } from '../../records/delivery-pause.ts'
import { RunLoop } from '../../runtime/run-loop.ts'

const READ_MS = 1_000

export class PauseWatch {
  readonly #db: Db
  readonly #log: Logger
  readonly #loop: RunLoop
  readonly #timer: NodeJS.Timeout
  readonly #unsubscribe: () => void
  #onResume: () => void = () => undefined
  /** Undefined: the pause was not read yet, or could not be read. Then nothing is leased. */
  #isPaused: boolean | undefined
  /** Whether the log says that deliveries are paused. */
  #isReported = false

  constructor(db: Db, log: Logger) {
    this.#db = db
    this.#log = log
    this.#loop = new RunLoop(
      () => this.#read(),
      (error) => {
        this.#isPaused = undefined
        log.warn(
          { err: error },
          'The pause of deliveries could not be read, so no attempt is made; trying again',
        )
      },
    )
    this.#timer = setInterval(this.#loop.wake, READ_MS)
    this.#unsubscribe = db.subscribe(PAUSE_CHANGED, this.#loop.wake)
    this.#loop.wake()
  }

  /** As of the last read. Each attempt reads the pause again before it starts. */
  get mayLease(): boolean {
    return this.#isPaused === false
  }

  /** Calls `listener` each time that leasing becomes possible, also after the first read. */
  onResume(listener: () => void): void {
    this.#onResume = listener
  }

  /** Call this when an attempt has read that deliveries are paused. */
  readonly onPaused = (): void => {
    this.#isPaused = true
    this.#loop.wake()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#unsubscribe()
    await this.#loop.stop()
  }

  async #read(): Promise<void> {
    const pausedAt = await findPausedAt(this.#db.read)
    const couldLease = this.mayLease
    this.#isPaused = pausedAt !== undefined
    this.#report(pausedAt)
    if (this.mayLease && !couldLease) this.#onResume()
  }

  #report(pausedAt: number | undefined): void {
    const isPaused = pausedAt !== undefined
    if (isPaused === this.#isReported) return
    this.#isReported = isPaused
    if (isPaused) warnOfPause(this.#log, pausedAt)
    else this.#log.info('Deliveries continue: the pause has ended')
  }
}

export function warnOfPause(log: Logger, pausedAt: number): void {
  log.warn(
    { paused_at: new Date(pausedAt).toISOString() },
    'Deliveries are paused: no attempt is made until "muster deliveries unpause" is run',
  )
}
