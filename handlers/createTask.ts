import type { Context } from '../operations/context.ts'
import { insertTask } from '../records/tasks.ts'

export async function createTask(ctx: Context<'createTask'>): Promise<void> {
  const { scope, input, now, emit } = ctx.state
  const task = await insertTask(scope, input, now)
  await emit('task.created', task.id)
  ctx.body = task
}
