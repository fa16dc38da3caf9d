import { operations } from '../generated/operations.ts'
import { listPage, type Page } from '../records/list.ts'
import { type Participant, participantListing } from '../records/participants.ts'
import type { Call } from './call.ts'

export async function listParticipants(call: Call<'listParticipants'>): Promise<Page<Participant>> {
  const { scope, query } = call
  return listPage(scope, participantListing, operations.listParticipants, query)
}
