import { insertParticipant, type Participant } from '../records/participants.ts'
import type { Call } from './call.ts'

export async function createParticipant(call: Call<'createParticipant'>): Promise<Participant> {
  const { scope, body, now, emit } = call
  const participant = await insertParticipant(scope, body, now)
  await emit('participant.created', participant.id)
  return participant
}
