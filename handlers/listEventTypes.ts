import { eventTypes } from '../generated/events.ts'
import type { EventTypeDescription } from '../generated/openapi.ts'
import { operations } from '../generated/operations.ts'
import { readPageStart, refuseCursor, writeCursor } from '../records/cursor.ts'
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
  const { query } = call
  const operation = operations.listEventTypes
  const { number, after } = readPageStart(operation, query)
  const size = query['page[size]']
  const start = after ? indexAfter(after.id) : (number - 1) * size
  const data = catalogue.slice(start, start + size)
  const total = catalogue.length
  const last = start + size < total ? data.at(-1) : undefined
  const cursor = last && writeCursor(operation, query, { page: number, values: [], id: last.name })
  return { data, meta: pageMeta(operation, { number, size, total, cursor }) }
}

/** The cursors of this list have names in place of IDs. */
function indexAfter(name: string): number {
  const index = catalogue.findIndex((type) => type.name === name)
  return index === -1 ? refuseCursor() : index + 1
}
