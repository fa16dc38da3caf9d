import { eventTypes } from '../generated/events.ts'
import type { EventTypeDescription } from '../generated/openapi.ts'
import { operations } from '../generated/operations.ts'
import { type ListPage, pageMeta } from '../records/list.ts'
import type { Call } from './call.ts'

const catalogue = Object.values(eventTypes).map(
  ({ name, description, resourceType, dataSchema }) => ({
    name,
    description,
    resource_type: resourceType,
    data_schema: dataSchema,
  }),
)

export async function listEventTypes(
  call: Call<'listEventTypes'>,
): Promise<ListPage<EventTypeDescription>> {
  const { 'page[number]': number, 'page[size]': size } = call.query
  const data = catalogue.slice((number - 1) * size, number * size)
  return { data, meta: pageMeta(number, size, catalogue.length, operations.listEventTypes) }
}
