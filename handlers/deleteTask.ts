import { assertFound } from '../errors.ts'
import { findRecord } from '../records/list.ts'
import { deleteTaskRow, taskListing } from '../records/tasks.ts'
import type { Call } from './call.ts'

export async function deleteTask(call: Call<'deleteTask'>): Promise<void> {
  const { scope, path, emit, assertMatch, emitUpdates, now } = call
  const current = await findRecord(scope, taskListing, path.task, { forUpdate: true })
  assertFound(current, 'task')
  assertMatch(current)
  const { payments } = await deleteTaskRow(scope, current.id, now)
  await emit('task.deleted', current.id)
  await emitUpdates('payment.updated', payments, [
    { field: 'task_id', before: current.id, after: null },
  ])
}
