import { insertPayment, type Payment } from '../records/payments.ts'
import type { Call } from './call.ts'

export async function createPayment(call: Call<'createPayment'>): Promise<Payment> {
  const { scope, input, now, emit } = call
  const payment = await insertPayment(scope, input, now)
  await emit('payment.created', payment.id)
  return payment
}
