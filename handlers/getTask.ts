import { assertFound } from '../errors.ts'
import { findRecord } from '../records/list.ts'
import { type Task, taskListing } from '../records/tasks.ts'
import type { Call } from './call.ts'

export async function getTask(call: Call<'getTask'>): Promise<Task> {
  const task = await findRecord(call.scope, taskListing, call.path.task, call.query)
  assertFound(task, 'task')
  return task
}
