import type { Context } from '../operations/context.ts'
import { deletePaymentRow, findPayment } from '../records/payments.ts'

export async function deletePayment(ctx: Context<'deletePayment'>): Promise<void> {
  const { scope, path, emit, assertMatch } = ctx.state
  const current = await findPayment(scope, path.payment, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such payment.')
  assertMatch(current)
  await deletePaymentRow(scope, current.id)
  await emit('payment.deleted', current.id)
}
