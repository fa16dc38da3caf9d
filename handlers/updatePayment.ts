import { assertFound } from '../errors.ts'
import { findChanges } from '../records/changes.ts'
import { findRecord } from '../records/list.ts'
import { type Payment, paymentListing, updatePaymentFields } from '../records/payments.ts'
import type { Call } from './call.ts'

export async function updatePayment(call: Call<'updatePayment'>): Promise<Payment> {
  const { scope, path, body, now, emit, emitUpdate, assertMatch } = call
  const current = await findRecord(scope, paymentListing, path.payment, { forUpdate: true })
  assertFound(current, 'payment')
  assertMatch(current)

  const changes = findChanges(current, body)
  if (changes === undefined) return current
  const updated = await updatePaymentFields(scope, current, changes, now)
  await emitUpdate('payment.updated', current, updated)
  if (changes.status === 'paid') await emit('payment.paid', current.id)
  return updated
}
