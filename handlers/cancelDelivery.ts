import { assertFound, throwConflict } from '../errors.ts'
import { findDelivery, type PublicDelivery, toPublicDelivery } from '../records/deliveries.ts'
import { commandDelivery } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function cancelDelivery(call: Call<'cancelDelivery'>): Promise<PublicDelivery> {
  const delivery = await findDelivery(call.scope, call.path.delivery, { forUpdate: true })
  assertFound(delivery, 'delivery')
  // A repeated request changes nothing.
  if (delivery.state === 'failed') return toPublicDelivery(delivery)
  const cancelled = await commandDelivery(call, delivery, 'cancel').catch(throwConflict)
  assertFound(cancelled, 'delivery')
  return toPublicDelivery(cancelled)
}
