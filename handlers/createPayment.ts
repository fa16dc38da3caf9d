import { insertPayment, type Payment } from '../records/payments.ts'
import type { Call } from './call.ts'

export async function createPayment(call: Call<'createPayment'>): Promise<Payment> {
  const { scope, body, now, emit } = call
  const payment = await insertPayment(scope, body, now)
  await emit('payment.created', payment.id)
  return payment
}
