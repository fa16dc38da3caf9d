import type { Context } from '../operations/context.ts'
import { findEvent } from '../records/events.ts'

export async function getEvent(ctx: Context<'getEvent'>): Promise<void> {
  const event = await findEvent(ctx.state.scope, ctx.state.path.event)
  ctx.assert(event, 404, 'There is no such event.')
  ctx.body = event
}
