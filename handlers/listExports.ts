import { operations } from '../generated/operations.ts'
import type { Context } from '../operations/context.ts'
import { exportListing } from '../records/exports.ts'
import { listPage } from '../records/list.ts'

export async function listExports(ctx: Context<'listExports'>): Promise<void> {
  const { scope, query } = ctx.state
  ctx.body = await listPage(scope, exportListing, operations.listExports, query)
}
