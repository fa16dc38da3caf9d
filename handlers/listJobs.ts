import { operations } from '../generated/operations.ts'
import { type Job, jobListing } from '../records/jobs.ts'
import { listPage, type Page } from '../records/list.ts'
import type { Call } from './call.ts'

export async function listJobs(call: Call<'listJobs'>): Promise<Page<Job>> {
  const { scope, query } = call
  return listPage(scope, jobListing, operations.listJobs, query)
}
