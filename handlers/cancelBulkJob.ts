import { assertFound } from '../errors.ts'
import { findBulkJob, type PublicBulkJob, toPublicBulkJob } from '../records/bulk-jobs.ts'
import { changeJob } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function cancelBulkJob(call: Call<'cancelBulkJob'>): Promise<PublicBulkJob> {
  const job = await findBulkJob(call.scope, call.path.bulk_job, { forUpdate: true })
  assertFound(job, 'bulk job')
  // A repeated request changes nothing.
  if (job.endedAt !== null) return toPublicBulkJob(call.scope, job)
  const cancelled = await changeJob(call, job, 'cancel')
  assertFound(cancelled, 'bulk job')
  return toPublicBulkJob(call.scope, cancelled)
}
