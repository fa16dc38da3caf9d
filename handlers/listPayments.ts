import { operations } from '../generated/operations.ts'
import type { Context } from '../operations/context.ts'
import { listPage } from '../records/list.ts'
import { paymentListing } from '../records/payments.ts'

export async function listPayments(ctx: Context<'listPayments'>): Promise<void> {
  const { scope, query } = ctx.state
  ctx.body = await listPage(scope, paymentListing, operations.listPayments, query)
}
