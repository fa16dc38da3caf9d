import type { Context } from '../operations/context.ts'
import { deleteJobApplicationRow, findJobApplication } from '../records/job-applications.ts'

export async function deleteJobApplication(ctx: Context<'deleteJobApplication'>): Promise<void> {
  const { scope, path, emit, assertMatch } = ctx.state
  const current = await findJobApplication(scope, path.job_application, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such job application.')
  assertMatch(current)
  await deleteJobApplicationRow(scope, current.id)
  await emit('job_application.deleted', current.id)
}
