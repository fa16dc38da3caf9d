import { operations } from '../generated/operations.ts'
import type { Context } from '../operations/context.ts'
import { listPage } from '../records/list.ts'
import { taskListing } from '../records/tasks.ts'

export async function listTasks(ctx: Context<'listTasks'>): Promise<void> {
  const { scope, query } = ctx.state
  ctx.body = await listPage(scope, taskListing, operations.listTasks, query)
}
