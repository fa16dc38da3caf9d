import { operations } from '../generated/operations.ts'
import { type Event, eventListing } from '../records/events.ts'
import { listPage, type Page } from '../records/list.ts'
import type { Call } from './call.ts'

export async function listEvents(call: Call<'listEvents'>): Promise<Page<Event>> {
  const { scope, query } = call
  return listPage(scope, eventListing, operations.listEvents, query)
}
