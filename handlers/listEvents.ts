import { operations } from '../generated/operations.ts'
import { eventListing, type PublicEvent } from '../records/events.ts'
import { type ListPage, listPage } from '../records/list.ts'
import type { Call } from './call.ts'

export async function listEvents(call: Call<'listEvents'>): Promise<ListPage<PublicEvent>> {
  const { scope, query } = call
  return listPage(scope, eventListing, operations.listEvents, query)
}
