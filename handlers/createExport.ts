import type { Context } from '../operations/context.ts'
import { JOBS_DUE } from '../records/due-work.ts'
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
  scope.trx.announce(JOBS_DUE)
  ctx.body = created
}
