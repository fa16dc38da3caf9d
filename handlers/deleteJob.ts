import { assertFound } from '../errors.ts'
import { deleteJobRow, jobListing } from '../records/jobs.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

export async function deleteJob(call: Call<'deleteJob'>): Promise<void> {
  const { scope, path, emit, assertMatch } = call
  const current = await findRecord(scope, jobListing, path.job, { forUpdate: true })
  assertFound(current, 'job')
  assertMatch(current)
  await deleteJobRow(scope, current.id)
  await emit('job.deleted', current.id)
}
