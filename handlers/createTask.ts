import { insertTask, type Task } from '../records/tasks.ts'
import type { Call } from './call.ts'

export async function createTask(call: Call<'createTask'>): Promise<Task> {
  const { scope, body, now, emit } = call
  const task = await insertTask(scope, body, now)
  await emit('task.created', task.id)
  return task
}
