import { assertFound } from '../errors.ts'
import { type JobApplication, jobApplicationListing } from '../records/job-applications.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

export async function getJobApplication(call: Call<'getJobApplication'>): Promise<JobApplication> {
  const application = await findRecord(
    call.scope,
    jobApplicationListing,
    call.path.job_application,
    call.query,
  )
  assertFound(application, 'job application')
  return application
}
