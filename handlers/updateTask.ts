import type { Context } from '../operations/context.ts'
import { changesOf } from '../records/changes.ts'
import { findTask, updateTaskFields } from '../records/tasks.ts'

export async function updateTask(ctx: Context<'updateTask'>): Promise<void> {
  const { scope, path, input, now, emit, assertMatch } = ctx.state
  const current = await findTask(scope, path.task, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such task.')
  assertMatch(current)
  ctx.body = current

  const changes = changesOf(current, input)
  if (changes === undefined) return
  ctx.body = await updateTaskFields(scope, current, changes, now)
  await emit('task.updated', current.id)
  if (changes.status === 'completed') await emit('task.completed', current.id)
}
