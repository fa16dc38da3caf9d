/** Bulk operations on deliveries. They run in the background, at a rate that leaves capacity for
 *  new events. Progress is committed with each batch, so a job can be interrupted anywhere and
 *  resumes exactly where it stopped. */
import { setTimeout as delay } from 'node:timers/promises'
import { Refused } from '../errors.ts'
import {
  type BulkBatch,
  countSelected,
  isAllCommitted,
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
} from '../records/delivery-commands.ts'
import { type EventRow, listEventRows } from '../records/events.ts'
import { findWebhook, type Webhook } from '../records/webhooks.ts'
import { newDelivery } from './emit.ts'

/** Deliveries per second. */
export const DEFAULT_RATE = 50
export const MAX_RATE = 500

/** The clocks of two machines may differ by this much. */
const CLOCK_SKEW_MS = 10_000

export interface Span {
  since?: Date
  until?: Date
}

/** Selects the events that a webhook missed in the span, or since it was last disabled. Delivered
 *  events are excluded later, so a slightly longer span is harmless. Throws `Refused` without a
 *  start. */
export function selectMissedEvents(
  webhook: Webhook,
  { since, until }: Span,
  now: Date,
): BulkSelection {
  if (since === undefined && webhook.disabledAt === null)
    throw new Refused(
      `Webhook ${webhook.id} has not been disabled: say since when it has missed events.`,
    )
  return {
    kind: 'send_missed',
    webhookId: webhook.id,
    eventTypes: webhook.eventTypes.includes('*') ? null : webhook.eventTypes,
    since:
      since?.getTime() ?? Math.max(webhook.createdAt, (webhook.disabledAt ?? 0) - CLOCK_SKEW_MS),
    until: until?.getTime() ?? now.getTime() + CLOCK_SKEW_MS,
  }
}

/** Selects the deliveries that failed in the span; without `eventTypes`, of all types. */
export function selectFailedDeliveries(
  webhookId: string | null,
  eventTypes: string[] | null,
  { since, until }: Span & { since: Date },
  now: Date,
): BulkSelection {
  // Excludes deliveries that fail again after the job has started.
  const end = Math.min(until?.getTime() ?? Number.POSITIVE_INFINITY, now.getTime())
  return { kind: 'retry_failed', webhookId, eventTypes, since: since.getTime(), until: end }
}

export interface BulkJobOptions {
  selection: BulkSelection
  /** Deliveries per second, from 1 to `MAX_RATE`. */
  rate: number
  createdBy: string | null
}

/** Counts the selected deliveries and starts the job. Throws as `insertBulkJob` does. */
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
/** Also determines how soon a job is paused or cancelled. */
const BATCHES_PER_SECOND = 4
/** How much time a job may make up for after an interruption. */
const MAX_CATCH_UP_MS = 1_000
/** The longest wait for the next batch, also after the clock went back. */
const MAX_WAIT_MS = 1_000
const COMMIT_WAIT_MS = 200

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
    if (!(await isAllCommitted(db, job, now()))) {
      await pause(COMMIT_WAIT_MS, signal)
      continue
    }
    // Limited, because the wall clock may jump.
    await pause(Math.min(job.nextAt - now().getTime(), MAX_WAIT_MS), signal)
    const batch = await readBatch(db, job, Math.ceil(job.rate / BATCHES_PER_SECOND))
    if (!signal.aborted) await transaction(db, (trx) => doBatch(trx, job, batch, now()))
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await delay(ms, undefined, { signal }).catch(() => undefined)
}

async function doBatch(
  trx: Trx,
  job: RunningBulkJob,
  { ids, next }: BulkBatch,
  now: Date,
): Promise<void> {
  if (!(await lockBulkJob(trx, job))) return
  const scope = writeScope(trx, job.accountId)
  const blockingReason = job.webhookId && (await findBlockingReason(scope, job.webhookId))
  if (blockingReason) return stopBlockedJob(trx, job.id, blockingReason, now)
  const done = ids.length === 0 ? 0 : await WORK[job.stage](scope, job, ids, now)
  // The second limit is for a clock that went back.
  const earliest = Math.max(job.nextAt, now.getTime() - MAX_CATCH_UP_MS)
  const nextAt =
    Math.min(earliest, now.getTime() + MAX_WAIT_MS) + Math.round((done * 1_000) / job.rate)
  await storeProgress(trx, job, { done, nextAt, next }, now)
}

/** Each returns the number of deliveries it created or changed. */
const WORK: Record<
  RunningBulkJob['stage'],
  (scope: WriteScope, job: RunningBulkJob, ids: string[], now: Date) => Promise<number>
> = {
  cut_off: (scope, _, ids, now) => resumeDeliveries(scope, ids, now),
  missed: createDeliveries,
  failed: (scope, _, ids, now) => retryFailedDeliveries(scope, ids, now),
}

async function createDeliveries(
  scope: WriteScope,
  { webhookId }: RunningBulkJob,
  eventIds: string[],
  now: Date,
): Promise<number> {
  const webhook = webhookId === null ? undefined : await findWebhook(scope, webhookId)
  if (webhook === undefined) return 0
  const events = await listEventRows(scope, eventIds)
  const deliveries = events.map((event) => newDelivery(webhook, event.id, toPayload(event)))
  await insertDeliveries(scope, deliveries, now)
  return deliveries.length
}

function toPayload(event: EventRow): Parameters<typeof newDelivery>[2] {
  const { id, event_type, resource_type, resource_id, data } = event
  return {
    id,
    event_type,
    resource: { type: resource_type, id: resource_id },
    data: JSON.parse(data),
  }
}
