import { setTimeout as delay } from 'node:timers/promises'
import type { AttemptWith } from '../../records/attempt.ts'
import { type DeliverOptions, deliver } from './deliver.ts'

const MAX_START_WAIT_MS = 20

/** Resolves when `started` does, but after `MAX_START_WAIT_MS` at the latest: the database may be
 *  slow. */
export async function untilStarted(started: Promise<void>): Promise<void> {
  await Promise.race([started, delay(MAX_START_WAIT_MS)])
}

/** The running calls of `deliver`. */
export class Deliveries {
  readonly #options: DeliverOptions
  readonly #running = new Set<Promise<void>>()
  readonly #stopping = new AbortController()

  constructor(options: DeliverOptions) {
    this.#options = options
  }

  get isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Takes slots for leased attempts, and starts those that were not in flight. Resolves when
   *  `deliver` has loaded the requests and started those that may start, but never if a stop comes
   *  first. */
  async startLeased(attempts: AttemptWith<'lease'>[]): Promise<void> {
    const added = this.#options.inFlight.add(attempts)
    if (added.length > 0) await this.start(added)
  }

  /** Starts attempts that have slots. Resolves like `startLeased`. */
  start(attempts: AttemptWith<'lease'>[]): Promise<void> {
    const started = Promise.withResolvers<void>()
    const call = deliver(this.#options, attempts, started.resolve, this.#stopping.signal)
    this.#running.add(call)
    call.finally(() => this.#running.delete(call))
    return started.promise
  }

  /** Starts no more requests. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Resolves when all attempts have ended or `graceMs` has passed. */
  async drain(graceMs: number): Promise<void> {
    const grace = new AbortController()
    await Promise.race([
      Promise.all(this.#running),
      delay(graceMs, undefined, { signal: grace.signal }).catch(() => undefined),
    ])
    grace.abort()
  }
}
