import { assertFound } from '../errors.ts'
import { listLastAttempts, toPublicAttempt } from '../records/attempts.ts'
import { findDelivery, type PublicDelivery, toPublicDelivery } from '../records/deliveries.ts'
import type { Call } from './call.ts'

const MAX_ATTEMPTS = 50

export async function getDelivery(call: Call<'getDelivery'>): Promise<PublicDelivery> {
  const { scope, path } = call
  const delivery = await findDelivery(scope, path.delivery)
  assertFound(delivery, 'delivery')
  const attempts = await listLastAttempts(scope, delivery.id, MAX_ATTEMPTS)
  return {
    ...toPublicDelivery(delivery),
    attempts: attempts.toReversed().map(toPublicAttempt),
  }
}
