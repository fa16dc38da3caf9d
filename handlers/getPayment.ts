import type { Context } from '../operations/context.ts'
import { findPayment } from '../records/payments.ts'

export async function getPayment(ctx: Context<'getPayment'>): Promise<void> {
  const payment = await findPayment(ctx.state.scope, ctx.state.path.payment)
  ctx.assert(payment, 404, 'There is no such payment.')
  ctx.body = payment
}
