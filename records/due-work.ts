/** Topics that transactions announce to the delivery engine and the background jobs. */
import type { Attempt } from './attempt.ts'
import type { Topic } from './database/announcements.ts'

/** If a transaction schedules more attempts, its announcement has no payload. */
const MAX_ANNOUNCED_ATTEMPTS = 1_000

/** Attempts were scheduled. The payload lists all of them. Without a payload, the engine queries
 *  for the attempts. */
export const ATTEMPTS_SCHEDULED: Topic<Attempt[]> = {
  name: 'attempts',
  merge(payloads) {
    const attempts: Attempt[] = []
    for (const payload of payloads) {
      if (!payload || attempts.length + payload.length > MAX_ANNOUNCED_ATTEMPTS) return undefined
      attempts.push(...payload)
    }
    return attempts
  },
}

/** The queue has more attempts to lease. */
export const ATTEMPTS_QUEUED: Topic = { name: 'queued' }

/** A background job has work. */
export const JOBS_DUE: Topic = { name: 'jobs' }
