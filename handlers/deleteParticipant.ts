import { assertFound } from '../errors.ts'
import { findRecord } from '../records/list.ts'
import { deleteParticipantRow, participantListing } from '../records/participants.ts'
import type { Call } from './call.ts'

export async function deleteParticipant(call: Call<'deleteParticipant'>): Promise<void> {
  const { scope, path, emit, assertMatch, emitUpdates, now } = call
  const current = await findRecord(scope, participantListing, path.participant, { forUpdate: true })
  assertFound(current, 'participant')
  assertMatch(current)
  const { tasks } = await deleteParticipantRow(scope, current.id, now)
  await emit('participant.deleted', current.id)
  await emitUpdates('task.updated', tasks, [
    { field: 'participant_id', before: current.id, after: null },
  ])
}
