import { findParticipant } from '../records/participants.ts'
import type { Context } from '../server/context.ts'

export async function getParticipant(ctx: Context<'getParticipant'>): Promise<void> {
  const participant = await findParticipant(ctx.state.scope, ctx.state.path.participant)
  ctx.assert(participant, 404, 'There is no such participant.')
  ctx.body = participant
}
