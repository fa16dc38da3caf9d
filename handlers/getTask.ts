import { assertFound } from '../errors.ts'
import { findTask, type Task } from '../records/tasks.ts'
import type { Call } from './call.ts'

export async function getTask(call: Call<'getTask'>): Promise<Task> {
  const task = await findTask(call.scope, call.path.task)
  assertFound(task, 'task')
  return task
}
