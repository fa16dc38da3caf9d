import type { Context } from '../operations/context.ts'
import { changesOf } from '../records/changes.ts'
import { findJob, updateJobFields } from '../records/jobs.ts'

export async function updateJob(ctx: Context<'updateJob'>): Promise<void> {
  const { scope, path, input, now, emit, assertMatch } = ctx.state
  const current = await findJob(scope, path.job, { forUpdate: true })
  ctx.assert(current, 404, 'There is no such job.')
  assertMatch(current)
  ctx.body = current

  const changes = changesOf(current, input)
  if (changes === undefined) return
  ctx.body = await updateJobFields(scope, current, changes, now)
  await emit('job.updated', current.id)
}
