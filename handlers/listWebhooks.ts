import { operations } from '../generated/operations.ts'
import { type ListPage, listPage } from '../records/list.ts'
import { type PublicWebhook, webhookListing } from '../records/webhooks.ts'
import type { Call } from './call.ts'

export async function listWebhooks(call: Call<'listWebhooks'>): Promise<ListPage<PublicWebhook>> {
  const { scope, query } = call
  return listPage(scope, webhookListing, operations.listWebhooks, query)
}
