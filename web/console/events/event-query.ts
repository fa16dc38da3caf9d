/** The filters and the page of the list of events, as written in its URL. */
import { eventTypes } from '../../../generated/events.ts'
import type { EventSearch } from '../../../records/event-search.ts'
import type { Choice, Errors } from '../form-fields.ts'
import { parseId, withQuery } from '../query.ts'
import { readPeriod } from '../webhooks/log-query.ts'

export interface EventQuery {
  search: Omit<EventSearch, 'limit'>
  /** The filters that are set, as typed. */
  input: Record<string, string>
  errors: Errors
}

const FILTERS = ['type', 'id', 'since', 'until', 'request']
const types = Object.keys(eventTypes)
export const typeChoices: Choice[] = types.map((type) => ({ value: type, label: type }))

export function readEventQuery(query: URLSearchParams): EventQuery {
  const input = Object.fromEntries(
    FILTERS.map((name) => [name, query.get(name)?.trim() ?? '']).filter(
      ([, value]) => value !== '',
    ),
  )
  const errors: Errors = {}
  const eventType = types.find((known) => known === input.type)
  if (input.type && !eventType) errors.type = ['Choose an event from the list.']
  const resourceId = parseId(input.id)
  if (input.id && !resourceId)
    errors.id = ['Enter the whole ID of a record, an event or a delivery.']
  const olderThan = parseId(query.get('before'))
  const newerThan = olderThan === undefined ? parseId(query.get('after')) : undefined
  return {
    search: { eventType, resourceId, ...readPeriod(input, errors), olderThan, newerThan },
    input,
    errors,
  }
}

/** The path of the list, below /console. */
export function eventsPath(
  input: Record<string, string>,
  page: Record<string, string | undefined> = {},
): string {
  return withQuery('/events', { ...input, ...page })
}
