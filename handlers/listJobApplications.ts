import { operations } from '../generated/operations.ts'
import { type JobApplication, jobApplicationListing } from '../records/job-applications.ts'
import { listPage, type Page } from '../records/list.ts'
import type { Call } from './call.ts'

export async function listJobApplications(
  call: Call<'listJobApplications'>,
): Promise<Page<JobApplication>> {
  const { scope, query } = call
  return listPage(scope, jobApplicationListing, operations.listJobApplications, query)
}
