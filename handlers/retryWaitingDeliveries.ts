import type { PublicBulkJob } from '../records/bulk-jobs.ts'
import { selectWaitingDeliveries } from '../webhooks/bulk.ts'
import { startJobByApi } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export function retryWaitingDeliveries(
  call: Call<'retryWaitingDeliveries'>,
): Promise<PublicBulkJob> {
  const { body, now } = call
  return startJobByApi(call, ({ id }) => selectWaitingDeliveries(id, body.event_types ?? null, now))
}
