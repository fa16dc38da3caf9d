import type { Context } from '../operations/context.ts'
import { insertJob } from '../records/jobs.ts'

export async function createJob(ctx: Context<'createJob'>): Promise<void> {
  const { scope, input, now, emit } = ctx.state
  const job = await insertJob(scope, input, now)
  await emit('job.created', job.id)
  ctx.body = job
}
