import { assertFound, throwConflict } from '../errors.ts'
import { countSelected } from '../records/bulk-batches.ts'
import { type PublicBulkJob, toPublicBulkJob } from '../records/bulk-jobs.ts'
import { findWebhook } from '../records/webhooks.ts'
import { selectFailedDeliveries } from '../webhooks/bulk.ts'
import { startJob } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function retryFailedDeliveries(
  call: Call<'retryFailedDeliveries'>,
): Promise<PublicBulkJob> {
  const { scope, path, body, caller, now } = call
  const webhook = await findWebhook(scope, path.webhook)
  assertFound(webhook, 'webhook')
  const since = new Date(body.since)
  const selection = selectFailedDeliveries(webhook.id, body.event_types ?? null, { since }, now)
  const total = await countSelected(scope, selection)
  const fields = { selection, rate: body.rate, total, createdBy: caller.userId }
  return toPublicBulkJob(scope, await startJob(call, webhook, fields).catch(throwConflict))
}
