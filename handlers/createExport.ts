import type { Context } from '../operations/context.ts'
import { insertExport } from '../records/exports.ts'

export async function createExport(ctx: Context<'createExport'>): Promise<void> {
  const { scope, input, principal, now } = ctx.state
  const isPermitted = input.resource !== 'payments' || principal.finance !== 'none'
  ctx.assert(
    isPermitted,
    403,
    'The owner of this API key has no Finance permission to read payments.',
  )
  const created = await insertExport(scope, input, now)
  await ctx.state.emit('export.created', created.id)
  scope.trx.markDue('jobs')
  ctx.body = created
}
