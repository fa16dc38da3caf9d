import type { FailureReason, Trigger } from '../../records/deliveries.ts'
import type { DeliveryPlan, SettlingDelivery } from '../../records/settlements.ts'

/** An attempt that has ended. */
export interface EndedAttempt {
  /** From 1. */
  number: number
  trigger: Trigger
  /** When it was to be made: tells whether the delivery still wants this attempt, or another one by now. */
  dueAt: number
  succeeded: boolean
  /** Epoch milliseconds. */
  endedAt: number
  /** When the endpoint asked to be tried again (`Retry-After`). Null: it did not. */
  retryAfterAt: number | null
}

/** An endpoint can put the next attempt off by this, no more. */
const MAX_RETRY_AFTER_MS = 24 * 3_600_000

/** What becomes of a delivery after a success, whatever it was. */
export const AFTER_SUCCESS: DeliveryPlan = {
  state: 'delivered',
  failureReason: null,
  nextAttemptAt: null,
  nextTrigger: null,
}

/** What becomes of a delivery after an attempt. `delaysMs` come before attempts 2, 3 and so on, each counted from the end of the attempt
 *  before; an endpoint may ask for more time, not for less. When they are used up, the delivery has failed. Attempts by hand are outside the schedule: one each, and a delivered delivery
 *  stays delivered whatever happens. service-spec §8 "Webhook attempt schedule". */
export function afterAttempt(
  delivery: Pick<
    SettlingDelivery,
    'state' | 'failureReason' | 'nextAttemptAt' | 'nextTrigger' | 'webhook'
  >,
  attempt: EndedAttempt,
  delaysMs: number[],
): DeliveryPlan {
  if (attempt.succeeded) return AFTER_SUCCESS

  // Ended or planned anew while the attempt was under way, for example by somebody who disabled the webhook.
  if (delivery.nextAttemptAt !== attempt.dueAt) {
    const { state, failureReason, nextAttemptAt, nextTrigger } = delivery
    return { state, failureReason, nextAttemptAt, nextTrigger }
  }
  if (delivery.state === 'delivered') return AFTER_SUCCESS
  if (!delivery.webhook.enabled)
    return failed(delivery.webhook.deleted ? 'webhook_deleted' : 'webhook_disabled')
  if (attempt.trigger !== 'schedule') return failed('attempt_failed')

  const delayMs = delaysMs[attempt.number - 1]
  if (delayMs === undefined) return failed('attempts_exhausted')
  const asked = Math.min(attempt.retryAfterAt ?? 0, attempt.endedAt + MAX_RETRY_AFTER_MS)
  return {
    state: 'retrying',
    failureReason: null,
    nextAttemptAt: Math.max(attempt.endedAt + delayMs, asked, attempt.dueAt + 1),
    nextTrigger: 'schedule',
  }
}

/** What becomes of a delivery whose planned attempt is not made, because its webhook is disabled or deleted. */
export function withoutAttempt(
  delivery: Pick<SettlingDelivery, 'state' | 'failureReason' | 'nextAttemptAt' | 'nextTrigger'>,
  dueAt: number,
  reason: FailureReason,
): DeliveryPlan {
  const { state, failureReason, nextAttemptAt, nextTrigger } = delivery
  if (nextAttemptAt !== dueAt) return { state, failureReason, nextAttemptAt, nextTrigger }
  if (state === 'delivered') return { state, failureReason, nextAttemptAt: null, nextTrigger: null }
  return failed(reason)
}

function failed(failureReason: FailureReason): DeliveryPlan {
  return { state: 'failed', failureReason, nextAttemptAt: null, nextTrigger: null }
}
