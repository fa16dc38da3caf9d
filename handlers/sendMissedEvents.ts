import { InvalidInput } from '../errors.ts'
import type { PublicBulkJob } from '../records/bulk-jobs.ts'
import { selectMissedEvents } from '../webhooks/bulk.ts'
import { startJobByApi } from '../webhooks/webhook-changes.ts'
import type { Call } from './call.ts'

export function sendMissedEvents(call: Call<'sendMissedEvents'>): Promise<PublicBulkJob> {
  const { body, now } = call
  const since = new Date(body.since)
  const until = body.until === undefined ? undefined : new Date(body.until)
  return startJobByApi(call, (webhook) => {
    if (until && until <= since) throw new InvalidInput({ until: ['must be after since.'] })
    return selectMissedEvents(webhook, { since, until }, now)
  })
}
