import { assertFound, StatusError, throwConflict } from '../errors.ts'
import {
  type Delivery,
  findDelivery,
  type PublicDelivery,
  toPublicDelivery,
} from '../records/deliveries.ts'
import { commandDelivery } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function retryDelivery(call: Call<'retryDelivery'>): Promise<PublicDelivery> {
  const delivery = await findDelivery(call.scope, call.path.delivery, { forUpdate: true })
  assertFound(delivery, 'delivery')
  return attemptOrRetry(call, delivery)
}

export async function attemptOrRetry(
  call: Call<'retryDelivery' | 'resendDelivery'>,
  delivery: Delivery,
): Promise<PublicDelivery> {
  const isWaiting = delivery.state === 'pending' || delivery.state === 'retrying'
  const command = isWaiting ? 'attempt' : 'retry'
  const changed = await commandDelivery(call, delivery, command).catch(throwConflict)
  assertFound(changed, 'delivery')
  if (isWaiting && changed.nextAttemptAt === null)
    throw new StatusError(409, 'The delivery waits for an earlier one of its record.')
  return toPublicDelivery(changed)
}
