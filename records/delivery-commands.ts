/** Commands on deliveries: retry, resend, attempt now, cancel, and their bulk forms. */
import { Refused } from '../errors.ts'
import type { Trigger } from './attempt.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import {
  DELIVERY_COLUMNS,
  type Delivery,
  type DeliveryRow,
  type DeliveryState,
  deliveryFromRow,
  findDelivery,
} from './deliveries.ts'
import { listBusyOrderings, takeTurn } from './delivery-order.ts'
import { ATTEMPTS_SCHEDULED } from './due-work.ts'

const MAX_CLOCK_DIFFERENCE_MS = 1_000

const REFUSALS = {
  not_failed: 'Only a failed delivery can be retried.',
  not_delivered: 'Only a delivered delivery can be resent.',
  not_scheduled: 'Only a pending or retrying delivery is on the schedule, and this one has ended.',
  webhook_disabled: 'The webhook is disabled. Enable it first.',
  webhook_deleted: 'The webhook was deleted.',
}

/** The state of the delivery or of its webhook does not allow the command. */
export class DeliveryRefused extends Refused {
  override name = 'DeliveryRefused'
  code: keyof typeof REFUSALS
  constructor(code: keyof typeof REFUSALS) {
    super(REFUSALS[code])
    this.code = code
  }
}

/** Schedules one manual attempt of a failed delivery, due now. Repeating it before that attempt changes
 *  nothing. Returns undefined when the delivery does not exist. Throws `DeliveryRefused`. */
export async function retryDelivery(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Delivery | undefined> {
  return scheduleManualAttempt(
    scope,
    id,
    { from: 'failed', trigger: 'retry', refusal: 'not_failed' },
    now,
  )
}

/** The same for a delivered delivery. */
export async function resendDelivery(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Delivery | undefined> {
  return scheduleManualAttempt(
    scope,
    id,
    { from: 'delivered', trigger: 'resend', refusal: 'not_delivered' },
    now,
  )
}

/** Now, or 1 ms after the last update: the due time identifies an attempt, so it must be unique within
 *  the delivery. */
function uniqueDueTime({ sql }: Scope, now: Date): ReturnType<Sql['raw']> {
  return sql.raw('case when updated_at < ? then cast(? as bigint) else updated_at + 1 end', [
    now.getTime(),
    now.getTime(),
  ])
}

interface ManualAttempt {
  from: DeliveryState
  trigger: Trigger
  refusal: 'not_failed' | 'not_delivered'
}

async function scheduleManualAttempt(
  scope: WriteScope,
  id: string,
  how: ManualAttempt,
  now: Date,
): Promise<Delivery | undefined> {
  const delivery = await findDelivery(scope, id)
  if (!delivery) return undefined
  await assertSendable(scope, delivery.webhookId)
  // Conditional: only the first of two concurrent requests schedules an attempt.
  const [row]: DeliveryRow[] = await scope
    .rows('deliveries')
    .where({ id, state: how.from })
    .whereNull('next_attempt_at')
    .update({
      next_attempt_at: uniqueDueTime(scope, now),
      next_trigger: how.trigger,
      queued_at: null,
    })
    .returning(DELIVERY_COLUMNS)
  if (row) {
    scope.trx.announce(ATTEMPTS_SCHEDULED)
    return deliveryFromRow(row)
  }
  const current = await findDelivery(scope, id)
  if (current && current.state !== how.from) throw new DeliveryRefused(how.refusal)
  return current
}

/** Schedules a manual retry of each failed delivery whose webhook is enabled and that has no scheduled
 *  attempt. Returns how many. */
export async function retryFailedDeliveries(
  scope: WriteScope,
  ids: string[],
  now: Date,
): Promise<number> {
  await lockInOrder(scope, ids)
  const enabled = scope
    .rows('webhooks')
    .where({ enabled: true })
    .whereNull('deleted_at')
    .select('webhooks.id')
  const planned = await scope
    .rows('deliveries')
    .whereIn('id', ids)
    .where({ state: 'failed' })
    .whereNull('next_attempt_at')
    .whereIn('webhook_id', enabled)
    .update({ next_attempt_at: uniqueDueTime(scope, now), next_trigger: 'retry', queued_at: null })
  if (planned > 0) scope.trx.announce(ATTEMPTS_SCHEDULED)
  return planned
}

/** Resumes the retry schedule of deliveries that failed because their webhook was disabled. Returns how
 *  many. */
export async function resumeDeliveries(
  scope: WriteScope,
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
  const ordered = rows.map((row) => ({
    ...row,
    webhookId: row.webhook_id,
    orderingKey: row.ordering_key ?? undefined,
  }))
  const busy = await listBusyOrderings(scope, ordered)
  for (const row of ordered) {
    const nextAttemptAt = takeTurn(row, busy) ? now.getTime() : null
    await scope
      .rows('deliveries')
      .where({ id: row.id })
      .update({
        // A pending delivery without a time is scheduled when the one before it ends.
        state: row.attempts === 0 || nextAttemptAt === null ? 'pending' : 'retrying',
        failure_reason: null,
        next_attempt_at: nextAttemptAt,
        next_trigger: 'schedule',
        queued_at: null,
        updated_at: now.getTime(),
      })
  }
  if (rows.length > 0) scope.trx.announce(ATTEMPTS_SCHEDULED)
  return rows.length
}

/** Avoids deadlocks: two transactions that lock the same rows in different orders wait for each other. */
async function lockInOrder(scope: WriteScope, ids: string[]): Promise<void> {
  if (scope.dialect === 'postgres')
    await scope.rows('deliveries').whereIn('id', ids).orderBy('id').forUpdate().select('id')
}

/** Makes the next scheduled attempt due now. It keeps its number, and later attempts are scheduled from
 *  its end. Changes nothing when the attempt is already due or waits for an earlier delivery of its
 *  ordering key. Returns undefined when the delivery does not exist. Throws `DeliveryRefused`. */
export async function attemptNow(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Delivery | undefined> {
  const [row]: DeliveryRow[] = await scope
    .rows('deliveries')
    .where({ id })
    .whereIn('state', ['pending', 'retrying'])
    // Sooner attempts may already be in flight: the worker's clock may be ahead of ours.
    .where('next_attempt_at', '>', now.getTime() + MAX_CLOCK_DIFFERENCE_MS)
    .update({ next_attempt_at: uniqueDueTime(scope, now), queued_at: null })
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
  id: string,
  now: Date,
): Promise<Delivery | undefined> {
  const [row]: DeliveryRow[] = await scope
    .rows('deliveries')
    .where({ id })
    .whereIn('state', ['pending', 'retrying'])
    .update({
      state: 'failed',
      failure_reason: 'cancelled',
      next_attempt_at: null,
      next_trigger: null,
      queued_at: null,
      updated_at: now.getTime(),
    })
    .returning(DELIVERY_COLUMNS)
  if (row) return deliveryFromRow(row)
  if (await findDelivery(scope, id)) throw new DeliveryRefused('not_scheduled')
  return undefined
}

async function assertSendable(scope: Scope, webhookId: string): Promise<void> {
  const webhook: { enabled: boolean | number; deleted_at: number | null } | undefined = await scope
    .rows('webhooks')
    .where({ id: webhookId })
    .first('enabled', 'deleted_at')
  if (!webhook || webhook.deleted_at !== null) throw new DeliveryRefused('webhook_deleted')
  if (!webhook.enabled) throw new DeliveryRefused('webhook_disabled')
}

/** Ends the scheduled deliveries of a webhook as failed. The engine ends manual attempts, which are due
 *  at once. */
export async function endScheduledDeliveries(
  scope: WriteScope,
  webhookId: string,
  reason: 'webhook_disabled' | 'webhook_deleted',
  now: Date,
): Promise<void> {
  await scope
    .rows('deliveries')
    .where({ webhook_id: webhookId })
    .whereIn('state', ['pending', 'retrying'])
    .update({
      state: 'failed',
      failure_reason: reason,
      next_attempt_at: null,
      next_trigger: null,
      queued_at: null,
      updated_at: now.getTime(),
    })
}
