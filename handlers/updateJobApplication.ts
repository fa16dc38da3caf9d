import { assertFound } from '../errors.ts'
import { findChanges } from '../records/changes.ts'
import {
  findJobApplication,
  type JobApplication,
  updateJobApplicationFields,
} from '../records/job-applications.ts'
import type { Call } from './call.ts'

export async function updateJobApplication(
  call: Call<'updateJobApplication'>,
): Promise<JobApplication> {
  const { scope, path, input, now, emit, assertMatch } = call
  const current = await findJobApplication(scope, path.job_application, { forUpdate: true })
  assertFound(current, 'job application')
  assertMatch(current)

  const changes = findChanges(current, input)
  if (changes === undefined) return current
  const updated = await updateJobApplicationFields(scope, current, changes, now)
  await emit('job_application.updated', current.id)
  if (changes.status) await emit('job_application.status_changed', current.id)
  return updated
}
