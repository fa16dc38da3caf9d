import { assertFound, throwConflict } from '../errors.ts'
import { findDelivery, type PublicDelivery, toPublicDelivery } from '../records/deliveries.ts'
import { commandDelivery } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'
import { attemptOrRetry } from './retryDelivery.ts'

export async function resendDelivery(call: Call<'resendDelivery'>): Promise<PublicDelivery> {
  const delivery = await findDelivery(call.scope, call.path.delivery, { forUpdate: true })
  assertFound(delivery, 'delivery')
  if (delivery.state !== 'delivered') return attemptOrRetry(call, delivery)
  const changed = await commandDelivery(call, delivery, 'resend').catch(throwConflict)
  assertFound(changed, 'delivery')
  return toPublicDelivery(changed)
}
