import type { Context } from '../operations/context.ts'
import { findJob } from '../records/jobs.ts'

export async function getJob(ctx: Context<'getJob'>): Promise<void> {
  const job = await findJob(ctx.state.scope, ctx.state.path.job)
  ctx.assert(job, 404, 'There is no such job.')
  ctx.body = job
}
