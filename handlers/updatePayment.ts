import type { Context } from '../operations/context.ts'
import { changesOf } from '../records/changes.ts'
import { findPayment, updatePaymentFields } from '../records/payments.ts'

export async function updatePayment(ctx: Context<'updatePayment'>): Promise<void> {
  const { scope, path, input, now, emit, assertMatch } = ctx.state
  const current = await findPayment(scope, path.payment, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such payment.')
  assertMatch(current)
  ctx.body = current

  const changes = changesOf(current, input)
  if (changes === undefined) return
  ctx.body = await updatePaymentFields(scope, current, changes, now)
  await emit('payment.updated', current.id)
  if (changes.status === 'paid') await emit('payment.paid', current.id)
}
