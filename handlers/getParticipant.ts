import { assertFound } from '../errors.ts'
import { findRecord } from '../records/list.ts'
import { type Participant, participantListing } from '../records/participants.ts'
import type { Call } from './call.ts'

export async function getParticipant(call: Call<'getParticipant'>): Promise<Participant> {
  const participant = await findRecord(call.scope, participantListing, call.path.participant)
  assertFound(participant, 'participant')
  return participant
}
