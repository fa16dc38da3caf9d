import { assertFound } from '../errors.ts'
import { deleteJobApplicationRow, findJobApplication } from '../records/job-applications.ts'
import type { Call } from './call.ts'

export async function deleteJobApplication(call: Call<'deleteJobApplication'>): Promise<void> {
  const { scope, path, emit, assertMatch } = call
  const current = await findJobApplication(scope, path.job_application, { forUpdate: true })
  assertFound(current, 'job application')
  assertMatch(current)
  await deleteJobApplicationRow(scope, current.id)
  await emit('job_application.deleted', current.id)
}
