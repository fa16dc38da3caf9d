import type { AttemptResult } from '../records/attempt-results.ts'
import type { ScheduledAttempt } from '../records/due-work.ts'

/** Temporary ownership of an attempt by this process. */
export interface Lease {
  jobId: string
  /** Counts the leases of a job: an older lease is void. */
  retryCount: number
}

/** An attempt on its way through the engine. */
export interface LeasedAttempt extends ScheduledAttempt {
  lease: Lease
  /** Set when the attempt has ended. Stays undefined when the delivery no longer wants it. */
  result?: AttemptResult
}
