import { insertJobApplication, type JobApplication } from '../records/job-applications.ts'
import type { Call } from './call.ts'

export async function createJobApplication(
  call: Call<'createJobApplication'>,
): Promise<JobApplication> {
  const { scope, body, now, emit } = call
  const application = await insertJobApplication(scope, body, now)
  await emit('job_application.created', application.id, {
    screening_outcome: application.screening_outcome,
  })
  return application
}
