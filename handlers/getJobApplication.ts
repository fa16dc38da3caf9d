import { assertFound } from '../errors.ts'
import { findJobApplication, type JobApplication } from '../records/job-applications.ts'
import type { Call } from './call.ts'

export async function getJobApplication(call: Call<'getJobApplication'>): Promise<JobApplication> {
  const application = await findJobApplication(call.scope, call.path.job_application)
  assertFound(application, 'job application')
  return application
}
