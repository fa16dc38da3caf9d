import { assertFound } from '../errors.ts'
import { deleteJobApplicationRow, jobApplicationListing } from '../records/job-applications.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

export async function deleteJobApplication(call: Call<'deleteJobApplication'>): Promise<void> {
  const { scope, path, emit, assertMatch } = call
  const current = await findRecord(scope, jobApplicationListing, path.job_application, {
    forUpdate: true,
  })
  assertFound(current, 'job application')
  assertMatch(current)
  await deleteJobApplicationRow(scope, current.id)
  await emit('job_application.deleted', current.id)
}
