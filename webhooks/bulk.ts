/** Work at many deliveries: started by people, done in the background, at a rate that leaves room for what happens meanwhile. */
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
  findBlockingReason,
  findRunningBulkJob,
  insertBulkJob,
  type RunningBulkJob,
} from '../records/bulk-jobs.ts'
import type { Db } from '../records/database/open.ts'
import { accountScope, type WriteScope, writeScope } from '../records/database/scope.ts'
import { type Trx, transaction } from '../records/database/transaction.ts'
import { insertDeliveries } from '../records/deliveries.ts'
import { resumeDeliveries, retryFailedDeliveries } from '../records/delivery-commands.ts'
import { type EventRow, listEventRows } from '../records/events.ts'
import { findWebhook, type Webhook } from '../records/webhooks.ts'
import { newDelivery } from './emit.ts'

/** Deliveries a second. */
export const DEFAULT_RATE = 50
export const MAX_RATE = 500

/** The clocks of two machines may differ by this much. */
const CLOCKS_MS = 10_000

export interface Span {
  since?: Date
  until?: Date
}

/** What a webhook has missed since it was last disabled, or in the time given. What it has got does not count, so a little more time than that
 *  does no harm. Throws `Refused` when there is nothing to go by. */
export function missedBy(webhook: Webhook, { since, until }: Span, now: Date): BulkSelection {
  if (since === undefined && webhook.disabledAt === null)
    throw new Refused(
      `Webhook ${webhook.id} has not been disabled: say since when it has missed events.`,
    )
  return {
    kind: 'send_missed',
    webhookId: webhook.id,
    eventTypes: webhook.eventTypes.includes('*') ? null : webhook.eventTypes,
    since: since?.getTime() ?? Math.max(webhook.createdAt, (webhook.disabledAt ?? 0) - CLOCKS_MS),
    until: until?.getTime() ?? now.getTime() + CLOCKS_MS,
  }
}

/** What failed in that time, and how: all types where none are given. */
export function failedIn(
  webhookId: string | null,
  eventTypes: string[] | null,
  { since, until }: Span & { since: Date },
  now: Date,
): BulkSelection {
  // What fails again after the start is not this job's.
  const end = Math.min(until?.getTime() ?? Number.POSITIVE_INFINITY, now.getTime())
  return { kind: 'retry_failed', webhookId, eventTypes, since: since.getTime(), until: end }
}

export interface StartOptions {
  /** Deliveries a second, from 1 to `MAX_RATE`. */
  rate: number
  createdBy: string | null
}

/** Counts what there is to do and starts it. Throws as `insertBulkJob` does. */
export async function startBulkJob(
  db: Db,
  accountId: string,
  selection: BulkSelection,
  { rate, createdBy }: StartOptions,
  now: Date,
): Promise<BulkJob> {
  const total = await countSelected(
    accountScope({ dialect: db.dialect, sql: db.read }, accountId),
    selection,
  )
  return transaction(db, (trx) =>
    insertBulkJob(writeScope(trx, accountId), { selection, rate, total, createdBy }, now),
  )
}

/** Then other jobs have their turn. */
const TURN_MS = 5_000
/** Batches in a second: so soon a job is paused or cancelled. */
const BATCHES_PER_SECOND = 4
/** How much of its rate a job may catch up on, after a turn of another or a stop. */
const CATCH_UP_MS = 1_000
const LONGEST_WAIT_MS = 1_000
const COMMIT_WAIT_MS = 200

/** Works at one job for some seconds, or until it ends, somebody pauses or cancels it, or `signal` aborts. */
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
    // However the clock is set, it does not take longer.
    await pause(Math.min(job.nextAt - now().getTime(), LONGEST_WAIT_MS), signal)
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
  const blockingReason =
    job.webhookId === null ? null : await findBlockingReason(scope, job.webhookId)
  if (blockingReason !== null) return stopBlockedJob(trx, job.id, blockingReason, now)
  const done = ids.length === 0 ? 0 : await WORK[job.stage](scope, job, ids, now)
  const nextAt =
    Math.max(job.nextAt, now.getTime() - CATCH_UP_MS) + Math.round((done * 1_000) / job.rate)
  await storeProgress(trx, job, { done, nextAt, next }, now)
}

/** Each says how many needed it. */
const WORK: Record<
  RunningBulkJob['stage'],
  (scope: WriteScope, job: RunningBulkJob, ids: string[], now: Date) => Promise<number>
> = {
  cut_off: (scope, _, ids, now) => resumeDeliveries(scope, ids, now),
  missed: makeDeliveries,
  failed: (scope, _, ids, now) => retryFailedDeliveries(scope, ids, now),
}

async function makeDeliveries(
  scope: WriteScope,
  { webhookId }: RunningBulkJob,
  eventIds: string[],
  now: Date,
): Promise<number> {
  const webhook = webhookId === null ? undefined : await findWebhook(scope, webhookId)
  if (webhook === undefined) return 0
  const events = await listEventRows(scope, eventIds)
  const deliveries = events.map((event) => newDelivery(webhook, event.id, payloadOf(event)))
  await insertDeliveries(scope, deliveries, now)
  return deliveries.length
}

function payloadOf(event: EventRow): Parameters<typeof newDelivery>[2] {
  const { id, event_type, resource_type, resource_id, data } = event
  return {
    id,
    event_type,
    resource: { type: resource_type, id: resource_id },
    data: JSON.parse(data),
  }
}
