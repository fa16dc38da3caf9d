import type { Context } from '../operations/context.ts'
import { findJobApplication } from '../records/job-applications.ts'

export async function getJobApplication(ctx: Context<'getJobApplication'>): Promise<void> {
  const application = await findJobApplication(ctx.state.scope, ctx.state.path.job_application)
  ctx.assert(application, 404, 'There is no such job application.')
  ctx.body = application
}
