import type { Context } from '../operations/context.ts'
import { findTask } from '../records/tasks.ts'

export async function getTask(ctx: Context<'getTask'>): Promise<void> {
  const task = await findTask(ctx.state.scope, ctx.state.path.task)
  ctx.assert(task, 404, 'There is no such task.')
  ctx.body = task
}
