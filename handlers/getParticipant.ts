import type { Context } from '../operations/context.ts'
import { findParticipant } from '../records/participants.ts'

export async function getParticipant(ctx: Context<'getParticipant'>): Promise<void> {
  const participant = await findParticipant(ctx.state.scope, ctx.state.path.participant)
  ctx.assert(participant, 404, 'There is no such participant.')
  ctx.body = participant
}
