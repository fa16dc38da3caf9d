import type { AttemptWith } from '../../records/attempt.ts'
import {
  AFTER_SUCCESS,
  type DeliveryProgress,
  type LockedDelivery,
} from '../../records/attempt-results.ts'
import type { FailureReason } from '../../records/deliveries.ts'

/** The parts of a delivery that the schedule depends on. */
type ScheduledDelivery = DeliveryProgress & Pick<LockedDelivery, 'webhook'>

/** The progress of a delivery after an attempt. `delaysMs` are the delays before attempts 2, 3 and
 *  so on, each counted from the end of the previous attempt. `Retry-After` does not change them.
 *  When the attempt after the last delay fails, too, the delivery has failed. A manual attempt is
 *  outside the schedule: no retry follows it, and a delivered delivery stays delivered even if the
 *  manual attempt fails. service-spec §8 "Webhook attempt schedule". */
export function progressAfter(
  delivery: ScheduledDelivery,
  { number, scheduledAt, result }: Pick<AttemptWith<'result'>, 'number' | 'scheduledAt' | 'result'>,
  delaysMs: number[],
): DeliveryProgress {
  if ('sent' in result && result.sent.outcome === 'success') return AFTER_SUCCESS

  // The delivery was ended or rescheduled while the attempt was in flight, for example because the
  // webhook was disabled.
  if (delivery.nextAttemptAt !== scheduledAt) return unchanged(delivery)
  if (delivery.state === 'delivered') return AFTER_SUCCESS
  if ('skipped' in result) return failed(result.skipped)
  if (!delivery.webhook.enabled)
    return failed(delivery.webhook.deleted ? 'webhook_deleted' : 'webhook_disabled')
  if (result.trigger !== 'schedule') return failed('attempt_failed')

  const delayMs = delaysMs[number - 1]
  if (delayMs === undefined) return failed('attempts_exhausted')
  // No two attempts of a delivery have the same scheduled time, even if the clock has gone back.
  const nextAttemptAt = Math.max(result.endedAt + delayMs, scheduledAt + 1)
  return { state: 'retrying', failureReason: null, nextAttemptAt, nextTrigger: 'schedule' }
}

function unchanged({ state, failureReason, nextAttemptAt, nextTrigger }: DeliveryProgress) {
  return { state, failureReason, nextAttemptAt, nextTrigger }
}

function failed(failureReason: FailureReason): DeliveryProgress {
  return { state: 'failed', failureReason, nextAttemptAt: null, nextTrigger: null }
}
