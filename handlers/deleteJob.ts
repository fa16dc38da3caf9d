import { assertFound } from '../errors.ts'
import { deleteJobRow, findJob } from '../records/jobs.ts'
import type { Call } from './call.ts'

export async function deleteJob(call: Call<'deleteJob'>): Promise<void> {
  const { scope, path, emit, assertMatch } = call
  const current = await findJob(scope, path.job, { forUpdate: true })
  assertFound(current, 'job')
  assertMatch(current)
  await deleteJobRow(scope, current.id)
  await emit('job.deleted', current.id)
}
