/** The texts of bulk jobs. */
import type { BulkKind, BulkState } from '../../../records/bulk-jobs.ts'
import { counted } from '../format.ts'
import type { Tone } from '../ui.ts'

interface KindTexts {
  /** The last part of the URL of the form that starts the job. */
  path: string
  title: string
  lead: string
  /** Shown when no delivery or event matches the form. */
  empty: string
  /** The title of an active job. */
  inProgress: string
  /** The notice after the start. */
  started: string
}

export const BULK_KINDS: Record<BulkKind, KindTexts> = {
  send_missed: {
    path: 'send-missed',
    title: 'Send missed events',
    lead:
      'Sends subscribed events that the webhook never received, and resumes deliveries that ' +
      'failed because it was disabled. A missed event gets the whole retry schedule, and a ' +
      'resumed delivery the rest of it.',
    empty: 'The webhook missed no events in this period.',
    inProgress: 'Sending missed events',
    started: 'Sending started.',
  },
  retry_failed: {
    path: 'retry-failed',
    title: 'Retry failed deliveries',
    lead:
      'Makes one more attempt for each delivery that failed in this period. ' +
      'Test events are not included.',
    empty: 'No deliveries failed in this period.',
    inProgress: 'Retrying failed deliveries',
    started: 'Retry started.',
  },
  retry_waiting: {
    path: 'retry-waiting',
    title: 'Retry waiting deliveries',
    lead:
      'Makes the next attempt of each retrying delivery now. It counts as an attempt of the retry ' +
      'schedule, so repair your endpoint first.',
    empty: 'No deliveries are waiting for a retry.',
    inProgress: 'Retrying waiting deliveries',
    started: 'Retry started.',
  },
}

/** A completed job is not green, because its attempts may all have failed. */
export const BULK_STATES: Record<BulkState, { label: string; tone: Tone }> = {
  running: { label: 'Running', tone: 'busy' },
  paused: { label: 'Paused', tone: 'warn' },
  completed: { label: 'Completed', tone: 'quiet' },
  cancelled: { label: 'Cancelled', tone: 'quiet' },
}

/** `1 second`, `5 minutes`, rounded up. */
export function roughDuration(seconds: number): string {
  if (seconds <= 59) return counted(Math.max(1, Math.ceil(seconds)), 'second')
  if (seconds <= 59 * 60) return counted(Math.ceil(seconds / 60), 'minute')
  return counted(Math.ceil(seconds / 3_600), 'hour')
}
