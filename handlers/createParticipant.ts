import type { Context } from '../operations/context.ts'
import { insertParticipant } from '../records/participants.ts'

export async function createParticipant(ctx: Context<'createParticipant'>): Promise<void> {
  const { scope, input, now, emit } = ctx.state
  const participant = await insertParticipant(scope, input, now)
  await emit('participant.created', participant.id)
  ctx.body = participant
}
