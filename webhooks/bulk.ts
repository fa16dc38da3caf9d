/** Bulk jobs: they create or retry deliveries in the background, at a rate that leaves capacity for
 *  new events. Progress is committed with each batch, so a job can be interrupted anywhere and
 *  resumes exactly where it stopped. */
import { setTimeout as delay } from 'node:timers/promises'
import { Refused } from '../errors.ts'
import {
  areEventsCommitted,
  type BulkBatch,
  countSelected,
  lockBulkJob,
  readBatch,
  stopBlockedJob,
  storeProgress,
} from '../records/bulk-batches.ts'
import {
  type BulkJob,
  type BulkSelection,
  findRunningBulkJob,
  insertBulkJob,
  type RunningBulkJob,
} from '../records/bulk-jobs.ts'
import type { Db } from '../records/database/open.ts'
import {
  accountTransaction,
  readScope,
  type WriteScope,
  writeScope,
} from '../records/database/scope.ts'
import { type Trx, transaction } from '../records/database/transaction.ts'
import { insertDeliveries } from '../records/deliveries.ts'
import {
  findBlockingReason,
  resumeDeliveries,
  retryFailedDeliveries,
  retryWaitingDeliveries,
} from '../records/delivery-commands.ts'
import { listEventRows } from '../records/events.ts'
import { isOperational } from '../records/subscriptions.ts'
import { findWebhook, type Webhook } from '../records/webhooks.ts'
import { newDelivery, payloadOf } from './emit.ts'
import { notifyOfBulkJob } from './notices.ts'

/** Deliveries per second. */
export const DEFAULT_RATE = 50
export const MAX_RATE = 500

/** The clocks of two machines may differ by this much. */
const CLOCK_SKEW_MS = 10_000

interface Period {
  since?: Date
  until?: Date
}

/** Selects the events that a webhook missed from `since` (by default, when it was last disabled) to
 *  `until` (by default, now). The defaults are wider by the clock skew, which is harmless: the job
 *  leaves out events that have a delivery for the webhook. Without `since`, throws `Refused` for a
 *  webhook that was never disabled. */
export function selectMissedEvents(
  webhook: Webhook,
  { since, until }: Period,
  now: Date,
): BulkSelection {
  if (since === undefined && webhook.disabledAt === null)
    throw new Refused(
      `Webhook ${webhook.id} has not been disabled. Set the time since which it has missed events.`,
    )
  return {
    kind: 'send_missed',
    webhookId: webhook.id,
    // Operational events are not stored, so none of them is missed.
    eventTypes: webhook.eventTypes.includes('*')
      ? null
      : webhook.eventTypes.filter((type) => !isOperational(type)),
    since:
      since?.getTime() ?? Math.max(webhook.createdAt, (webhook.disabledAt ?? 0) - CLOCK_SKEW_MS),
    until: until?.getTime() ?? now.getTime() + CLOCK_SKEW_MS,
  }
}

/** Selects the deliveries that failed in the period. `webhookId` null: of all webhooks;
 *  `eventTypes` null: of all types. */
export function selectFailedDeliveries(
  webhookId: string | null,
  eventTypes: string[] | null,
  { since, until }: Period & { since: Date },
  now: Date,
): BulkSelection {
  // Excludes deliveries that fail again after the job has started.
  const end = Math.min(until?.getTime() ?? Number.POSITIVE_INFINITY, now.getTime())
  return { kind: 'retry_failed', webhookId, eventTypes, since: since.getTime(), until: end }
}

/** Selects the retrying deliveries with an attempt scheduled after `now`, however old they are. The
 *  other parameters are as in `selectFailedDeliveries`. */
export function selectWaitingDeliveries(
  webhookId: string | null,
  eventTypes: string[] | null,
  now: Date,
): BulkSelection {
  return { kind: 'retry_waiting', webhookId, eventTypes, since: 0, until: now.getTime() }
}

interface BulkJobOptions {
  selection: BulkSelection
  /** Deliveries per second, from 1 to `MAX_RATE`. */
  rate: number
  createdBy: string | null
}

/** Counts the selected events or deliveries, and starts the job. Throws as `insertBulkJob` does. */
export async function startBulkJob(
  db: Db,
  accountId: string,
  { selection, rate, createdBy }: BulkJobOptions,
  now: Date,
): Promise<BulkJob> {
  const total = await countSelected(readScope(db, accountId), selection)
  return accountTransaction(db, accountId, (scope) =>
    insertBulkJob(scope, { selection, rate, total, createdBy }, now),
  )
}

/** How long a job runs before other jobs run. */
const TURN_MS = 5_000
/** Several, because a job is paused or cancelled only between two batches. A job with a rate below
 *  this number of deliveries per second has fewer batches, of one delivery each. */
const MAX_BATCHES_PER_SECOND = 4
/** After an interruption, a job makes up for at most this much of the lost time. */
const MAX_CATCH_UP_MS = 1_000
/** The longest time from one batch to the next, at the lowest rate. */
const MAX_WAIT_MS = 1_000
/** How often to check whether the events of a job are committed. */
const COMMIT_POLL_MS = 200

/** Runs a job for a turn, or until it ends, is paused or cancelled, or `signal` aborts. */
export async function runBulkJob(
  db: Db,
  id: string,
  now: () => Date,
  signal: AbortSignal,
): Promise<void> {
  const turnEndsAt = performance.now() + TURN_MS
  while (!signal.aborted && performance.now() < turnEndsAt) {
    const job = await findRunningBulkJob(db, id)
    if (job === undefined) return
    if (!(await areEventsCommitted(db, job, now()))) {
      await wait(COMMIT_POLL_MS, signal)
      continue
    }
    // `nextAt` is further away than MAX_WAIT_MS only after the clock has gone back. Then this batch
    // does not wait until `nextAt`.
    await wait(Math.min(job.nextAt - now().getTime(), MAX_WAIT_MS), signal)
    const batch = await readBatch(db, job, Math.ceil(job.rate / MAX_BATCHES_PER_SECOND))
    if (!signal.aborted) await transaction(db, (trx) => doBatch(trx, job, batch, now()))
  }
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await delay(ms, undefined, { signal }).catch(() => undefined)
}

async function doBatch(
  trx: Trx,
  job: RunningBulkJob,
  { ids, next }: BulkBatch,
  now: Date,
): Promise<void> {
  // The job may have been paused or cancelled, or another process has done this batch.
  if (!(await lockBulkJob(trx, job))) return
  const scope = writeScope(trx, job.accountId)
  const blockingReason = job.webhookId && (await findBlockingReason(scope, job.webhookId))
  if (blockingReason) {
    await stopBlockedJob(trx, job, blockingReason, now)
    if (blockingReason === 'webhook_deleted') await notifyOfBulkJob(scope, job, blockingReason, now)
    return
  }
  const doneCount = ids.length === 0 ? 0 : await WORK[job.stage](scope, job, ids, now)
  const nextAt = startOf(job, now) + Math.round((doneCount * 1_000) / job.rate)
  await storeProgress(trx, job, { doneCount, nextAt, next }, now)
  if (next === null) await notifyOfBulkJob(scope, job, { done: job.done + doneCount }, now)
}

/** The time at which the current batch counts as begun: `nextAt`, but at most `MAX_CATCH_UP_MS` ago
 *  (after an interruption) and at most `MAX_WAIT_MS` ahead (after the clock has gone back). */
function startOf({ nextAt }: RunningBulkJob, now: Date): number {
  const at = now.getTime()
  return Math.min(Math.max(nextAt, at - MAX_CATCH_UP_MS), at + MAX_WAIT_MS)
}

/** What each stage does with a batch of IDs: `cut_off` resumes deliveries that failed because their
 *  webhook was disabled, `missed` creates deliveries of events, `failed` retries deliveries, and
 *  `waiting` makes their next attempts due. Each returns the number of deliveries that it created or changed. */
const WORK: Record<
  RunningBulkJob['stage'],
  (scope: WriteScope, job: RunningBulkJob, ids: string[], now: Date) => Promise<number>
> = {
  cut_off: (scope, { id }, ids, now) => resumeDeliveries(scope, id, ids, now),
  missed: createDeliveries,
  failed: (scope, { id }, ids, now) => retryFailedDeliveries(scope, id, ids, now),
  waiting: (scope, { id }, ids, now) => retryWaitingDeliveries(scope, id, ids, now),
}

async function createDeliveries(
  scope: WriteScope,
  { id, webhookId }: RunningBulkJob,
  eventIds: string[],
  now: Date,
): Promise<number> {
  const webhook = webhookId === null ? undefined : await findWebhook(scope, webhookId)
  if (webhook === undefined) return 0
  const events = await listEventRows(scope, eventIds)
  const deliveries = events.map((event) => ({
    ...newDelivery(webhook, payloadOf(event, JSON.parse(event.data))),
    bulkJobId: id,
  }))
  await insertDeliveries(scope, deliveries, now)
  return deliveries.length
}
