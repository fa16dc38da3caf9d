/** The filters and the page of a delivery log, as written in its URL. */
import { eventTypes, operationalTypes } from '../../../generated/events.ts'
import { type DeliveryState, deliveryStates, TEST_EVENT } from '../../../records/deliveries.ts'
import type { DeliverySearch } from '../../../records/delivery-search.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import { DATE_TIME_ERROR, parseDateTimeInput } from '../../shared/date-time-input.ts'
import type { Choice, Errors } from '../form-fields.ts'
import { parseId } from '../query.ts'

const PAGE_SIZE = 25

/** A list of deliveries: of one webhook, or of all. */
export interface Log {
  /** Below /console. */
  path: string
  /** All whose deliveries it lists. */
  webhooks: Webhook[]
  /** Its tabs. Without a choice, it shows the first one. */
  tabs: readonly Tab[]
  /** Whether each row names its webhook. */
  namesWebhooks: boolean
}

type Tab = DeliveryState | 'all'

export interface LogQuery {
  search: DeliverySearch
  tab: Tab
  /** The filters that are set, as typed. */
  input: Record<string, string>
  isFirstPage: boolean
  errors: Errors
}

const FILTERS = ['state', 'webhook', 'type', 'since', 'until', 'id', 'job']
export const loggedTypes = [...Object.keys({ ...eventTypes, ...operationalTypes }), TEST_EVENT]
export const typeChoices: Choice[] = loggedTypes.map((type) => ({ value: type, label: type }))

export function readLogQuery({ webhooks, tabs }: Log, query: URLSearchParams): LogQuery {
  const input = Object.fromEntries(
    FILTERS.map((name) => [name, query.get(name)?.trim() ?? '']).filter(
      ([, value]) => value !== '',
    ),
  )
  const errors: Errors = {}
  const olderThan = parseId(query.get('before'))
  const newerThan = olderThan === undefined ? parseId(query.get('after')) : undefined

  const tab = tabs.find((known) => known === (input.state ?? tabs[0]))
  if (!tab) errors.state = ['Choose a state from the list.']
  const ids = webhooks.map(({ id }) => id)
  const webhookIds = input.webhook ? ids.filter((id) => id === input.webhook) : ids
  if (webhookIds.length === 0) errors.webhook = ['Choose a webhook from the list.']
  const eventType = loggedTypes.find((known) => known === input.type)
  if (input.type && !eventType) errors.type = ['Choose an event from the list.']
  const id = parseId(input.id)
  if (input.id && !id) errors.id = ['Enter the whole ID of a delivery or an event.']
  const bulkJobId = parseId(input.job)
  if (input.job && !bulkJobId) errors.job = ['Enter the whole ID of a bulk job.']
  const { since, until } = readPeriod(input, errors)

  return {
    search: {
      ...{ webhookIds, eventType, id, bulkJobId, since, until },
      ...{ olderThan, newerThan, limit: PAGE_SIZE },
      state: tab === 'all' ? undefined : tab,
    },
    tab: tab ?? 'all',
    input,
    isFirstPage: olderThan === undefined && newerThan === undefined,
    errors,
  }
}

/** In epoch milliseconds. */
interface Period {
  /** Inclusive. */
  since?: number
  /** Exclusive. */
  until?: number
}

/** Adds problems to `errors`. An empty field is not a problem: its time is undefined. */
export function readPeriod(input: { since?: string; until?: string }, errors: Errors): Period {
  const since = parseDateTimeInput(input.since ?? '')
  const until = parseDateTimeInput(input.until ?? '')
  if (input.since && since === undefined) errors.since = [DATE_TIME_ERROR]
  if (input.until && until === undefined) errors.until = [DATE_TIME_ERROR]
  if (since !== undefined && until !== undefined && since >= until)
    errors.until = ['Choose a time after “From”.']
  return { since, until }
}

export const logOfWebhook = (webhook: Webhook): Log => ({
  path: `/webhooks/${webhook.id}`,
  webhooks: [webhook],
  tabs: ['all', ...deliveryStates],
  namesWebhooks: false,
})
