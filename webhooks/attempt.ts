import type { AttemptResult } from '../records/attempt-results.ts'
import type { ScheduledAttempt } from '../records/due-work.ts'

/** Temporary ownership of an attempt by this process. */
export interface Lease {
  jobId: string
  /** Counts the leases of a job: an older lease is void. */
  retryCount: number
}

/** One attempt on its way through the engine. Each stage adds its part. */
export interface Attempt extends ScheduledAttempt {
  lease?: Lease
  /** Stays undefined when the delivery no longer wants this attempt. */
  result?: AttemptResult
}

export type LeasedAttempt = Attempt & { lease: Lease }
