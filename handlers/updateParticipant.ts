import type { Context } from '../operations/context.ts'
import { changesOf } from '../records/changes.ts'
import { findParticipant, updateParticipantFields } from '../records/participants.ts'

export async function updateParticipant(ctx: Context<'updateParticipant'>): Promise<void> {
  const { scope, path, input, now, emit, assertMatch } = ctx.state
  const current = await findParticipant(scope, path.participant, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such participant.')
  assertMatch(current)
  ctx.body = current

  const changes = changesOf(current, input)
  if (changes === undefined) return
  ctx.body = await updateParticipantFields(scope, current, changes, now)
  await emit('participant.updated', current.id)
}
