import type { Context } from '../operations/context.ts'
import { deleteTaskRow, findTask } from '../records/tasks.ts'

export async function deleteTask(ctx: Context<'deleteTask'>): Promise<void> {
  const { scope, path, emit, assertMatch, emitMany, now } = ctx.state
  const current = await findTask(scope, path.task, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such task.')
  assertMatch(current)
  const { payments } = await deleteTaskRow(scope, current.id, now)
  await emit('task.deleted', current.id)
  await emitMany('payment.updated', payments)
}
