import { assertFound } from '../errors.ts'
import { findBulkJob, type PublicBulkJob, toPublicBulkJob } from '../records/bulk-jobs.ts'
import type { Call } from './call.ts'

export async function getBulkJob(call: Call<'getBulkJob'>): Promise<PublicBulkJob> {
  const job = await findBulkJob(call.scope, call.path.bulk_job)
  assertFound(job, 'bulk job')
  return toPublicBulkJob(call.scope, job)
}
