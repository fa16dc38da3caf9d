/** Commands on deliveries: retry, resend, attempt now and cancel, and changes to many deliveries at
 *  once. */
import { Refused } from '../errors.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import {
  DELIVERY_COLUMNS,
  type Delivery,
  type DeliveryRow,
  deliveryFromRow,
  type FailureReason,
  findDelivery,
} from './deliveries.ts'
import { findFirstInOrder } from './delivery-order.ts'
import { findPausedAt } from './delivery-pause.ts'
import { ATTEMPTS_SCHEDULED } from './due-work.ts'

const MAX_CLOCK_DIFFERENCE_MS = 1_000

const REFUSALS = {
  not_failed: 'Only a failed delivery can be retried.',
  not_delivered: 'Only a delivered delivery can be resent.',
  not_scheduled: 'The delivery has ended. Only a pending or retrying delivery has a next attempt.',
  webhook_disabled: 'The webhook is disabled. Enable it first.',
  webhook_deleted: 'The webhook was deleted.',
  account_suspended: 'The account is suspended. Resume it first with "muster account resume".',
  deliveries_paused:
    'All deliveries are paused. The operator ends the pause with "muster deliveries unpause".',
}

/** The command is not possible in the state of the delivery or of its webhook, or while deliveries
 *  are paused. */
export class DeliveryRefused extends Refused {
  override name = 'DeliveryRefused'
  code: keyof typeof REFUSALS
  constructor(code: keyof typeof REFUSALS) {
    super(REFUSALS[code])
    this.code = code
  }
}

type OfWebhook = Pick<Delivery, 'id' | 'webhookId'>

/** Schedules one manual attempt of a failed delivery, due now. Repeating the command before that
 *  attempt changes nothing. Returns undefined when the delivery does not exist. Throws
 *  `DeliveryRefused`. */
export const retryDelivery = (scope: WriteScope, delivery: OfWebhook, now: Date) =>
  scheduleManualAttempt(scope, delivery, 'retry', now)

/** As `retryDelivery`, but for a delivered delivery. */
export const resendDelivery = (scope: WriteScope, delivery: OfWebhook, now: Date) =>
  scheduleManualAttempt(scope, delivery, 'resend', now)

/** For each kind of manual attempt: the state that the delivery must have, and the refusal when it
 *  has another state. */
const MANUAL = {
  retry: { state: 'failed', refusal: 'not_failed' },
  resend: { state: 'delivered', refusal: 'not_delivered' },
} as const

async function scheduleManualAttempt(
  scope: WriteScope,
  { id, webhookId }: OfWebhook,
  trigger: keyof typeof MANUAL,
  now: Date,
): Promise<Delivery | undefined> {
  const { state, refusal } = MANUAL[trigger]
  await assertNotPaused(scope)
  await assertWebhookEnabled(scope, webhookId)
  // The conditions let only the first of two concurrent requests schedule an attempt.
  const [row]: DeliveryRow[] = await scope
    .rows('deliveries')
    .where({ id, state })
    .whereNull('next_attempt_at')
    .update({ ...dueNow(scope, now), next_trigger: trigger })
    .returning(DELIVERY_COLUMNS)
  if (row) {
    scope.trx.announce(ATTEMPTS_SCHEDULED)
    return deliveryFromRow(row)
  }
  const current = await findDelivery(scope, id)
  if (current && current.state !== state) throw new DeliveryRefused(refusal)
  return current
}

/** The columns of a delivery whose next attempt is due now, or 1 ms after the last update if that
 *  is later. The due time identifies an attempt, so it must be unique within the delivery. */
function dueNow({ sql }: Scope, now: Date) {
  const later = 'case when updated_at < ? then cast(? as bigint) else updated_at + 1 end'
  return { next_attempt_at: sql.raw(later, [now.getTime(), now.getTime()]), queued_at: null }
}

/** Schedules a manual retry of each failed delivery whose webhook is enabled and that has no
 *  scheduled attempt, for a bulk job. Returns how many. */
export async function retryFailedDeliveries(
  scope: WriteScope,
  jobId: string,
  ids: string[],
  now: Date,
): Promise<number> {
  await lockInOrder(scope, ids)
  const enabled = scope
    .rows('webhooks')
    .where({ enabled: true })
    .whereNull('deleted_at')
    .select('webhooks.id')
  const scheduled = await scope
    .rows('deliveries')
    .whereIn('id', ids)
    .where({ state: 'failed' })
    .whereNull('next_attempt_at')
    .whereIn('webhook_id', enabled)
    .update({ ...dueNow(scope, now), next_trigger: 'retry', bulk_job_id: jobId })
  if (scheduled > 0) scope.trx.announce(ATTEMPTS_SCHEDULED)
  return scheduled
}

/** Makes the next attempts of retrying deliveries due now, for a bulk job, as `attemptNow` does.
 *  Returns how many. */
export async function retryWaitingDeliveries(
  scope: WriteScope,
  jobId: string,
  ids: string[],
  now: Date,
): Promise<number> {
  await lockInOrder(scope, ids)
  const scheduled = await scope
    .rows('deliveries')
    .whereIn('id', ids)
    .where({ state: 'retrying' })
    .where('next_attempt_at', '>', now.getTime() + MAX_CLOCK_DIFFERENCE_MS)
    .update({ ...dueNow(scope, now), bulk_job_id: jobId })
  if (scheduled > 0) scope.trx.announce(ATTEMPTS_SCHEDULED)
  return scheduled
}

/** Resumes the retry schedule of deliveries that failed because their webhook was disabled, for a
 *  bulk job. Returns how many. */
export async function resumeDeliveries(
  scope: WriteScope,
  jobId: string,
  ids: string[],
  now: Date,
): Promise<number> {
  await lockInOrder(scope, ids)
  const rows: { id: string; webhook_id: string; ordering_key: string | null; attempts: number }[] =
    await scope
      .rows('deliveries')
      .whereIn('id', ids)
      .where({ state: 'failed', failure_reason: 'webhook_disabled' })
      .whereNull('next_attempt_at')
      .orderBy('id')
      .select('id', 'webhook_id', 'ordering_key', 'attempts')
  const deliveries = rows.map((row) => ({
    ...row,
    webhookId: row.webhook_id,
    orderingKey: row.ordering_key ?? undefined,
  }))
  const firstInOrder = await findFirstInOrder(scope, deliveries)
  for (const delivery of deliveries) {
    // Null: the delivery is scheduled when the earlier delivery of its ordering key ends.
    const nextAttemptAt = firstInOrder.has(delivery) ? now.getTime() : null
    await scope
      .rows('deliveries')
      .where({ id: delivery.id })
      .update({
        state: delivery.attempts === 0 || nextAttemptAt === null ? 'pending' : 'retrying',
        failure_reason: null,
        next_attempt_at: nextAttemptAt,
        next_trigger: 'schedule',
        queued_at: null,
        bulk_job_id: jobId,
        updated_at: now.getTime(),
      })
  }
  if (rows.length > 0) scope.trx.announce(ATTEMPTS_SCHEDULED)
  return rows.length
}

/** Avoids deadlocks: two transactions that lock the same rows in different orders wait for each
 *  other. */
async function lockInOrder(scope: WriteScope, ids: string[]): Promise<void> {
  if (scope.dialect === 'postgres')
    await scope.rows('deliveries').whereIn('id', ids).orderBy('id').forUpdate().select('id')
}

/** Makes the next scheduled attempt due now. It keeps its number, and later attempts are scheduled
 *  from its end. Changes nothing when the attempt is due, is due within `MAX_CLOCK_DIFFERENCE_MS`,
 *  or waits for an earlier delivery of its ordering key. Returns undefined when the delivery does
 *  not exist. Throws `DeliveryRefused`. */
export async function attemptNow(
  scope: WriteScope,
  { id }: Pick<Delivery, 'id'>,
  now: Date,
): Promise<Delivery | undefined> {
  await assertNotPaused(scope)
  const [row]: DeliveryRow[] = await unfinishedDeliveries(scope)
    .where({ id })
    // Sooner attempts may already be in flight: the worker's clock may be ahead of ours.
    .where('next_attempt_at', '>', now.getTime() + MAX_CLOCK_DIFFERENCE_MS)
    .update(dueNow(scope, now))
    .returning(DELIVERY_COLUMNS)
  if (row) {
    scope.trx.announce(ATTEMPTS_SCHEDULED)
    return deliveryFromRow(row)
  }
  const current = await findDelivery(scope, id)
  if (current && current.state !== 'pending' && current.state !== 'retrying')
    throw new DeliveryRefused('not_scheduled')
  return current
}

/** Ends a delivery as failed. An attempt in flight may still deliver it. Returns undefined when the
 *  delivery does not exist. Throws `DeliveryRefused` when it has ended, also for the second of two
 *  concurrent requests. */
export async function cancelDelivery(
  scope: WriteScope,
  { id }: Pick<Delivery, 'id'>,
  now: Date,
): Promise<Delivery | undefined> {
  const [row]: DeliveryRow[] = await unfinishedDeliveries(scope)
    .where({ id })
    .update(failedColumns('cancelled', now))
    .returning(DELIVERY_COLUMNS)
  if (row) return deliveryFromRow(row)
  if (await findDelivery(scope, id)) throw new DeliveryRefused('not_scheduled')
  return undefined
}

/** Why a webhook gets no deliveries. */
export type BlockingReason = 'webhook_disabled' | 'webhook_deleted'

interface WebhookState {
  enabled: boolean | number
  deleted_at: number | null
  suspended_at: number | null
}

/** On PostgreSQL the webhook stays locked until the transaction ends, so that nobody enables or
 *  disables it before the caller's changes are committed. */
function findWebhookState(scope: WriteScope, id: string): Promise<WebhookState | undefined> {
  return scope
    .rows('webhooks')
    .where({ id })
    .forShare()
    .first('enabled', 'deleted_at', 'suspended_at')
}

function blockingReasonOf(webhook: WebhookState | undefined): BlockingReason | undefined {
  if (!webhook || webhook.deleted_at !== null) return 'webhook_deleted'
  return webhook.enabled ? undefined : 'webhook_disabled'
}

/** Undefined: the webhook is enabled. Its account may be suspended, which is not a blocking
 *  reason. */
export async function findBlockingReason(
  scope: WriteScope,
  webhookId: string,
): Promise<BlockingReason | undefined> {
  return blockingReasonOf(await findWebhookState(scope, webhookId))
}

/** Throws `DeliveryRefused` unless the webhook is enabled and its account is not suspended. */
export async function assertWebhookEnabled(scope: WriteScope, webhookId: string): Promise<void> {
  const webhook = await findWebhookState(scope, webhookId)
  const reason = blockingReasonOf(webhook)
  if (reason) throw new DeliveryRefused(reason)
  if (webhook?.suspended_at != null) throw new DeliveryRefused('account_suspended')
}

/** Throws `DeliveryRefused` while all deliveries are paused. */
export async function assertNotPaused({ sql }: Scope): Promise<void> {
  if ((await findPausedAt(sql)) !== undefined) throw new DeliveryRefused('deliveries_paused')
}

/** Ends the pending and retrying deliveries of a webhook as failed. Manual attempts of its other
 *  deliveries stay scheduled: they are due at once, and the engine skips them because the webhook
 *  is disabled or deleted. */
export async function endUnfinishedDeliveries(
  scope: WriteScope,
  webhookId: string,
  reason: BlockingReason,
  now: Date,
): Promise<void> {
  await unfinishedDeliveries(scope)
    .where({ webhook_id: webhookId })
    .update(failedColumns(reason, now))
}

function unfinishedDeliveries(scope: WriteScope): ReturnType<Scope['rows']> {
  return scope.rows('deliveries').whereIn('state', ['pending', 'retrying'])
}

function failedColumns(reason: FailureReason, now: Date) {
  return {
    state: 'failed',
    failure_reason: reason,
    next_attempt_at: null,
    next_trigger: null,
    queued_at: null,
    updated_at: now.getTime(),
  }
}
