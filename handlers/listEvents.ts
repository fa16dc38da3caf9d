import { operations } from '../generated/operations.ts'
import type { Context } from '../operations/context.ts'
import { eventListing } from '../records/events.ts'
import { listPage } from '../records/list.ts'

export async function listEvents(ctx: Context<'listEvents'>): Promise<void> {
  const { scope, query } = ctx.state
  ctx.body = await listPage(scope, eventListing, operations.listEvents, query)
}
