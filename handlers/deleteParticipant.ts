import type { Context } from '../operations/context.ts'
import { deleteParticipantRow, findParticipant } from '../records/participants.ts'

export async function deleteParticipant(ctx: Context<'deleteParticipant'>): Promise<void> {
  const { scope, path, emit, assertMatch, emitMany, now } = ctx.state
  const current = await findParticipant(scope, path.participant, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such participant.')
  assertMatch(current)
  const { tasks } = await deleteParticipantRow(scope, current.id, now)
  await emit('participant.deleted', current.id)
  await emitMany('task.updated', tasks)
}
