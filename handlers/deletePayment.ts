import { assertFound } from '../errors.ts'
import { findRecord } from '../records/list.ts'
import { deletePaymentRow, paymentListing } from '../records/payments.ts'
import type { Call } from './call.ts'

export async function deletePayment(call: Call<'deletePayment'>): Promise<void> {
  const { scope, path, emit, assertMatch } = call
  const current = await findRecord(scope, paymentListing, path.payment, { forUpdate: true })
  assertFound(current, 'payment')
  assertMatch(current)
  await deletePaymentRow(scope, current.id)
  await emit('payment.deleted', current.id)
}
