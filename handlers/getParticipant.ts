import { assertFound } from '../errors.ts'
import { findParticipant, type Participant } from '../records/participants.ts'
import type { Call } from './call.ts'

export async function getParticipant(call: Call<'getParticipant'>): Promise<Participant> {
  const participant = await findParticipant(call.scope, call.path.participant)
  assertFound(participant, 'participant')
  return participant
}
