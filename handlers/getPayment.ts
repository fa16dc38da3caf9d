import { assertFound } from '../errors.ts'
import { findRecord } from '../records/list.ts'
import { type Payment, paymentListing } from '../records/payments.ts'
import type { Call } from './call.ts'

export async function getPayment(call: Call<'getPayment'>): Promise<Payment> {
  const payment = await findRecord(call.scope, paymentListing, call.path.payment, call.query)
  assertFound(payment, 'payment')
  return payment
}
