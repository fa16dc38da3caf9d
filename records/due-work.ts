/** What records announce to the delivery engine and the background jobs. */
import type { Topic } from './database/announcements.ts'

/** A scheduled attempt. The delivery ID and the due time identify it: no two attempts of a delivery share both. */
export interface PlannedAttempt {
  deliveryId: string
  /** Never changes for a delivery. */
  webhookId: string
  /** Expected attempt number, 1-based; the final number is assigned when the result is stored. */
  number: number
  /** Epoch milliseconds. */
  dueAt: number
}

/** A transaction that schedules more attempts than this announces no list: the engine queries for them. */
const MAX_ANNOUNCED_ATTEMPTS = 1_000

/** Attempts were scheduled. The payload lists all of them; without it, the engine queries for them. */
export const ATTEMPTS_SCHEDULED: Topic<PlannedAttempt[]> = {
  name: 'attempts',
  merge(payloads) {
    const attempts: PlannedAttempt[] = []
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
