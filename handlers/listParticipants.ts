import { operations } from '../generated/operations.ts'
import type { Context } from '../operations/context.ts'
import { listPage } from '../records/list.ts'
import { participantListing } from '../records/participants.ts'

export async function listParticipants(ctx: Context<'listParticipants'>): Promise<void> {
  const { scope, query } = ctx.state
  ctx.body = await listPage(scope, participantListing, operations.listParticipants, query)
}
