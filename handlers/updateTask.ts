import { assertFound } from '../errors.ts'
import { findChanges } from '../records/changes.ts'
import { findRecord } from '../records/list.ts'
import { type Task, taskListing, updateTaskFields } from '../records/tasks.ts'
import type { Call } from './call.ts'

export async function updateTask(call: Call<'updateTask'>): Promise<Task> {
  const { scope, path, body, now, emit, emitUpdate, assertMatch } = call
  const current = await findRecord(scope, taskListing, path.task, { forUpdate: true })
  assertFound(current, 'task')
  assertMatch(current)

  const changes = findChanges(current, body)
  if (changes === undefined) return current
  const updated = await updateTaskFields(scope, current, changes, now)
  await emitUpdate('task.updated', current, updated)
  if (changes.status === 'completed') await emit('task.completed', current.id)
  return updated
}
