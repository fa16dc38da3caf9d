import { operations } from '../generated/operations.ts'
import { type Job, jobListing } from '../records/jobs.ts'
import { type ListPage, listPage } from '../records/list.ts'
import type { Call } from './call.ts'

export async function listJobs(call: Call<'listJobs'>): Promise<ListPage<Job>> {
  const { scope, query } = call
  return listPage(scope, jobListing, operations.listJobs, query)
}
