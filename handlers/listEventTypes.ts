import { eventTypes } from '../generated/events.ts'
import { operations } from '../generated/operations.ts'
import type { Context } from '../operations/context.ts'
import { pageMeta } from '../records/list.ts'

const catalogue = Object.values(eventTypes).map(
  ({ name, description, resourceType, dataSchema }) => ({
    name,
    description,
    resource_type: resourceType,
    data_schema: dataSchema,
  }),
)

export async function listEventTypes(ctx: Context<'listEventTypes'>): Promise<void> {
  const { 'page[number]': number, 'page[size]': size } = ctx.state.query
  const data = catalogue.slice((number - 1) * size, number * size)
  ctx.body = { data, meta: pageMeta(number, size, catalogue.length, operations.listEventTypes) }
}
