import { insertJob, type Job } from '../records/jobs.ts'
import type { Call } from './call.ts'

export async function createJob(call: Call<'createJob'>): Promise<Job> {
  const { scope, input, now, emit } = call
  const job = await insertJob(scope, input, now)
  await emit('job.created', job.id)
  return job
}
