import type { Logger } from 'pino'
import type { AttemptJobs } from '../queue/attempt-jobs.ts'
import type { InFlight } from './in-flight.ts'

const RENEWAL_MS = 3_000
const RETRY_MS = 500

/** Renews the leases of the attempts in flight until `stop`. */
export class LeaseRenewal {
  readonly #options: { jobs: AttemptJobs; inFlight: InFlight; log: Logger }
  readonly #timer = setInterval(() => this.#renew(), RENEWAL_MS)
  #retry: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: { jobs: AttemptJobs; inFlight: InFlight; log: Logger }) {
    this.#options = options
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
    clearTimeout(this.#retry)
  }

  #renew(): void {
    const { inFlight, jobs, log } = this.#options
    jobs.renew(inFlight.list()).catch((error: unknown) => {
      if (this.#isStopped) return
      log.warn({ err: error }, 'Leases could not be renewed; trying again')
      clearTimeout(this.#retry)
      this.#retry = setTimeout(() => this.#renew(), RETRY_MS)
    })
  }
}
