import type { Context } from '../operations/context.ts'
import { deleteJobRow, findJob } from '../records/jobs.ts'

export async function deleteJob(ctx: Context<'deleteJob'>): Promise<void> {
  const { scope, path, emit, assertMatch } = ctx.state
  const current = await findJob(scope, path.job, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such job.')
  assertMatch(current)
  await deleteJobRow(scope, current.id)
  await emit('job.deleted', current.id)
}
