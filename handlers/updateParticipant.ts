import { assertFound } from '../errors.ts'
import { findChanges } from '../records/changes.ts'
import {
  findParticipant,
  type Participant,
  updateParticipantFields,
} from '../records/participants.ts'
import type { Call } from './call.ts'

export async function updateParticipant(call: Call<'updateParticipant'>): Promise<Participant> {
  const { scope, path, input, now, emit, assertMatch } = call
  const current = await findParticipant(scope, path.participant, { forUpdate: true })
  assertFound(current, 'participant')
  assertMatch(current)

  const changes = findChanges(current, input)
  if (changes === undefined) return current
  const updated = await updateParticipantFields(scope, current, changes, now)
  await emit('participant.updated', current.id)
  return updated
}
