import type { Context } from '../operations/context.ts'
import { insertJobApplication } from '../records/job-applications.ts'

export async function createJobApplication(ctx: Context<'createJobApplication'>): Promise<void> {
  const { scope, input, now, emit } = ctx.state
  const application = await insertJobApplication(scope, input, now)
  await emit('job_application.created', application.id, {
    screening_outcome: application.screening_outcome,
  })
  ctx.body = application
}
