import { operations } from '../generated/operations.ts'
import { type JobApplication, jobApplicationListing } from '../records/job-applications.ts'
import { type ListPage, listPage } from '../records/list.ts'
import type { Call } from './call.ts'

export async function listJobApplications(
  call: Call<'listJobApplications'>,
): Promise<ListPage<JobApplication>> {
  const { scope, query } = call
  return listPage(scope, jobApplicationListing, operations.listJobApplications, query)
}
