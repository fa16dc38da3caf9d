import { assertFound } from '../errors.ts'
import { findChanges } from '../records/changes.ts'
import { findRecord } from '../records/list.ts'
import {
  type Participant,
  participantListing,
  updateParticipantFields,
} from '../records/participants.ts'
import type { Call } from './call.ts'

export async function updateParticipant(call: Call<'updateParticipant'>): Promise<Participant> {
  const { scope, path, body, now, emitUpdate, assertMatch } = call
  const current = await findRecord(scope, participantListing, path.participant, { forUpdate: true })
  assertFound(current, 'participant')
  assertMatch(current)

  const changes = findChanges(current, body)
  if (changes === undefined) return current
  const updated = await updateParticipantFields(scope, current, changes, now)
  await emitUpdate('participant.updated', current, updated)
  return updated
}
