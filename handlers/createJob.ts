import { insertJob, type Job } from '../records/jobs.ts'
import type { Call } from './call.ts'

export async function createJob(call: Call<'createJob'>): Promise<Job> {
  const { scope, body, now, emit } = call
  const job = await insertJob(scope, body, now)
  await emit('job.created', job.id)
  return job
}
