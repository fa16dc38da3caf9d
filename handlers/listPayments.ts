import { operations } from '../generated/operations.ts'
import { listPage } from '../records/list.ts'
import { paymentListing } from '../records/payments.ts'
import type { Context } from '../server/context.ts'

export async function listPayments(ctx: Context<'listPayments'>): Promise<void> {
  const { scope, query } = ctx.state
  ctx.body = await listPage(scope, paymentListing, operations.listPayments, query)
}
