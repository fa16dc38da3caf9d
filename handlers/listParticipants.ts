import { operations } from '../generated/operations.ts'
import { type ListPage, listPage } from '../records/list.ts'
import { type Participant, participantListing } from '../records/participants.ts'
import type { Call } from './call.ts'

export async function listParticipants(
  call: Call<'listParticipants'>,
): Promise<ListPage<Participant>> {
  const { scope, query } = call
  return listPage(scope, participantListing, operations.listParticipants, query)
}
