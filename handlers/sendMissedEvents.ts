import { assertFound, InvalidInput, throwConflict } from '../errors.ts'
import { countSelected } from '../records/bulk-batches.ts'
import { type PublicBulkJob, toPublicBulkJob } from '../records/bulk-jobs.ts'
import { findWebhook } from '../records/webhooks.ts'
import { selectMissedEvents } from '../webhooks/bulk.ts'
import { startJob } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export async function sendMissedEvents(call: Call<'sendMissedEvents'>): Promise<PublicBulkJob> {
  const { scope, path, body, caller, now } = call
  const webhook = await findWebhook(scope, path.webhook)
  assertFound(webhook, 'webhook')
  const since = new Date(body.since)
  const until = body.until === undefined ? undefined : new Date(body.until)
  if (until && until <= since) throw new InvalidInput({ until: ['must be after since.'] })
  const selection = selectMissedEvents(webhook, { since, until }, now)
  const total = await countSelected(scope, selection)
  const fields = { selection, rate: body.rate, total, createdBy: caller.userId }
  return toPublicBulkJob(scope, await startJob(call, webhook, fields).catch(throwConflict))
}
