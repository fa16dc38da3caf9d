import { assertFound } from '../errors.ts'
import { findPayment, type Payment } from '../records/payments.ts'
import type { Call } from './call.ts'

export async function getPayment(call: Call<'getPayment'>): Promise<Payment> {
  const payment = await findPayment(call.scope, call.path.payment)
  assertFound(payment, 'payment')
  return payment
}
