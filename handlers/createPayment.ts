import type { Context } from '../operations/context.ts'
import { insertPayment } from '../records/payments.ts'

export async function createPayment(ctx: Context<'createPayment'>): Promise<void> {
  const { scope, input, now, emit } = ctx.state
  const payment = await insertPayment(scope, input, now)
  await emit('payment.created', payment.id)
  ctx.body = payment
}
