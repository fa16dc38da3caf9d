import { assertFound } from '../errors.ts'
import { type Job, jobListing } from '../records/jobs.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

export async function getJob(call: Call<'getJob'>): Promise<Job> {
  const job = await findRecord(call.scope, jobListing, call.path.job, call.query)
  assertFound(job, 'job')
  return job
}
