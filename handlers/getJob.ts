import { assertFound } from '../errors.ts'
import { findJob, type Job } from '../records/jobs.ts'
import type { Call } from './call.ts'

export async function getJob(call: Call<'getJob'>): Promise<Job> {
  const job = await findJob(call.scope, call.path.job)
  assertFound(job, 'job')
  return job
}
