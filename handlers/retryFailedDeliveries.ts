import type { PublicBulkJob } from '../records/bulk-jobs.ts'
import { selectFailedDeliveries } from '../webhooks/bulk.ts'
import { startJobByApi } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export function retryFailedDeliveries(call: Call<'retryFailedDeliveries'>): Promise<PublicBulkJob> {
  const { body, now } = call
  const since = new Date(body.since)
  return startJobByApi(call, ({ id }) =>
    selectFailedDeliveries(id, body.event_types ?? null, { since }, now),
  )
}
