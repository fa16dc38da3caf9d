import type { Context } from '../operations/context.ts'
import { findExport } from '../records/exports.ts'

export async function getExport(ctx: Context<'getExport'>): Promise<void> {
  const found = await findExport(ctx.state.scope, ctx.state.path.export)
  ctx.assert(found, 404, 'There is no such export.')
  ctx.body = found
}
