import type { Context } from '../operations/context.ts'
import { changesOf } from '../records/changes.ts'
import { findJobApplication, updateJobApplicationFields } from '../records/job-applications.ts'

export async function updateJobApplication(ctx: Context<'updateJobApplication'>): Promise<void> {
  const { scope, path, input, now, emit, assertMatch } = ctx.state
  const current = await findJobApplication(scope, path.job_application, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such job application.')
  assertMatch(current)
  ctx.body = current

  const changes = changesOf(current, input)
  if (changes === undefined) return
  ctx.body = await updateJobApplicationFields(scope, current, changes, now)
  await emit('job_application.updated', current.id)
  if (changes.status) await emit('job_application.status_changed', current.id)
}
