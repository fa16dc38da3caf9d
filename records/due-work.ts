/** Topics that transactions announce to the delivery engine and the background jobs. */
import type { Topic } from './database/announcements.ts'

/** A scheduled attempt. Delivery ID and time identify it: no two attempts of a delivery are
 *  scheduled at the same time. */
export interface ScheduledAttempt {
  deliveryId: string
  /** Never changes for a delivery. */
  webhookId: string
  /** Expected attempt number, 1-based; the final number is assigned when the result is stored. */
  number: number
  /** Epoch milliseconds. */
  scheduledAt: number
}

/** A transaction that schedules more attempts than this announces no list: the engine queries for them. */
const MAX_ANNOUNCED_ATTEMPTS = 1_000

/** Attempts were scheduled. The payload lists all of them; without it, the engine queries for them. */
export const ATTEMPTS_SCHEDULED: Topic<ScheduledAttempt[]> = {
  name: 'attempts',
  merge(payloads) {
    const attempts: ScheduledAttempt[] = []
    for (const payload of payloads) {
      if (!payload || attempts.length + payload.length > MAX_ANNOUNCED_ATTEMPTS) return undefined
      attempts.push(...payload)
    }
    return attempts
  },
}

/** The queue holds due attempts. */
export const ATTEMPTS_QUEUED: Topic = { name: 'queued' }

/** A background job has work. */
export const JOBS_DUE: Topic = { name: 'jobs' }
