/** The log of a webhook: what is looked for in it, and its rows. A delivery has a `tbody` of its own, which changes in place. */
import { validate as isUuid } from 'uuid'
import { eventTypes } from '../../../generated/events.ts'
import {
  type AttemptSummary,
  listAttemptSummaries,
  type Outcome,
} from '../../../records/attempts.ts'
import {
  type Delivery,
  type DeliveryState,
  deliveryStates,
  TEST_EVENT,
} from '../../../records/deliveries.ts'
import type { DeliverySearch } from '../../../records/delivery-search.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import { DATE_TIME_ERROR, parseDateTimeInput } from '../../shared/date-time-input.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import type { Visit } from '../page.ts'
import {
  action,
  copyButton,
  countdownTo,
  counted,
  duration,
  type Errors,
  pill,
  shortId,
  type Tone,
  timeOf,
} from '../ui.ts'
import { mayManage } from './webhook-access.ts'

export const STATES: Record<DeliveryState, { label: string; tone: Tone }> = {
  pending: { label: 'Pending', tone: 'busy' },
  retrying: { label: 'Retrying', tone: 'warn' },
  delivered: { label: 'Delivered', tone: 'ok' },
  failed: { label: 'Failed', tone: 'bad' },
}

const DELIVERIES_PER_PAGE = 25

/** What somebody looks for, as it stands in the address. */
export interface LogQuery {
  search: Omit<DeliverySearch, 'webhookId'>
  /** The filters that are set, as they were typed. */
  given: Record<string, string>
  /** Is it the newest of what is looked for? */
  isFirstPage: boolean
  errors: Errors
}

const FILTERS = ['state', 'type', 'since', 'until', 'id']
export const loggedTypes = [...Object.keys(eventTypes), TEST_EVENT]

export function readLogQuery(query: URLSearchParams): LogQuery {
  const given = Object.fromEntries(
    FILTERS.map((name) => [name, query.get(name)?.trim() ?? '']).filter(
      ([, value]) => value !== '',
    ),
  )
  const errors: Errors = {}
  const idOf = (value: string | null): string | undefined =>
    value !== null && isUuid(value) ? value.toLowerCase() : undefined
  const olderThan = idOf(query.get('before'))
  const newerThan = olderThan === undefined ? idOf(query.get('after')) : undefined

  const state = deliveryStates.find((one) => one === given.state)
  if (given.state && !state) errors.state = ['There is no such state.']
  const eventType = loggedTypes.find((one) => one === given.type)
  if (given.type && !eventType) errors.type = ['There is no such event.']
  const id = idOf(given.id ?? null)
  if (given.id && !id) errors.id = ['This is not an id.']
  const [since, until] = [
    parseDateTimeInput(given.since ?? ''),
    parseDateTimeInput(given.until ?? ''),
  ]
  if (given.since && since === undefined) errors.since = [DATE_TIME_ERROR]
  if (given.until && until === undefined) errors.until = [DATE_TIME_ERROR]
  if (since !== undefined && until !== undefined && since >= until)
    errors.until = ['This is not after “From”.']

  return {
    search: {
      state,
      eventType,
      id,
      since,
      until,
      olderThan,
      newerThan,
      limit: DELIVERIES_PER_PAGE,
    },
    given,
    isFirstPage: olderThan === undefined && newerThan === undefined,
    errors,
  }
}

/** The address of the log, below /console, with other filters or another page. */
export function logAddress(
  webhookId: string,
  given: Record<string, string>,
  change: Record<string, string> = {},
): string {
  const query = new URLSearchParams(
    Object.entries({ ...given, ...change }).filter(([, value]) => value !== ''),
  )
  return `/webhooks/${webhookId}${query.size > 0 ? `?${query}` : ''}`
}

export const deliveryAddress = ({ webhookId, id }: Pick<Delivery, 'webhookId' | 'id'>): string =>
  `/webhooks/${webhookId}/deliveries/${id}`

/** How a row is shown: closed or open in the log, or open on the delivery's own page. */
export type RowView = 'closed' | 'open' | 'alone'

export interface Row {
  delivery: Delivery
  /** The last of them, in their order. */
  attempts: AttemptSummary[]
  view: RowView
  /** Under the row, where it is open. */
  detail?: Content
  /** The log that it is in brings itself up to date. */
  isInLive?: boolean
}

const SHOWN_ATTEMPTS = 12

/** With the attempts of each. */
export async function rowsOf(
  { scope }: Visit,
  deliveries: Delivery[],
): Promise<Pick<Row, 'delivery' | 'attempts'>[]> {
  const ids = deliveries.map(({ id }) => id)
  const attempts = Map.groupBy(
    await listAttemptSummaries(scope, ids, SHOWN_ATTEMPTS),
    ({ deliveryId }) => deliveryId,
  )
  return deliveries.map((delivery) => ({ delivery, attempts: attempts.get(delivery.id) ?? [] }))
}

const HEADINGS = ['State', 'Event', 'Id', 'Answer', 'Took', 'Attempts', 'Created']
const COLUMNS = HEADINGS.length + 1

export function deliveriesTable(visit: Visit, webhook: Webhook, rows: Row[]): Html {
  return html`<div class="table-frame" role="region" aria-label="Deliveries" tabindex="0"><table class="log"><thead><tr>${HEADINGS.map(
    (heading) =>
      html`<th scope="col"${heading === 'Took' && html` class="number"`}>${heading}</th>`,
  )}<th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>${rows.map((row) => deliveryRow(visit, webhook, row))}</table></div>`
}

function deliveryRow(visit: Visit, webhook: Webhook, row: Row): Html {
  const { delivery, attempts, view, detail } = row
  const { id, state, createdAt } = delivery
  const last = attempts.at(-1)
  return html`<tbody id="delivery-${id}" class="${view === 'closed' ? '' : 'opened'}"${refresh(visit, row)}><tr><td>${pill(STATES[state].tone, STATES[state].label)}</td><td>${eventCell(row)}</td><td><span class="id"><code title="${id}">${shortId(id)}</code>${copyButton(id, 'id')}</span></td><td>${last && answerOf(last)}</td><td class="number">${last && duration(last.durationMs)}</td><td>${dotsOf(delivery, attempts)}</td><td class="nowrap">${timeOf(createdAt, visit.now)}</td><td><div class="row-actions">${rowAction(visit, webhook, row)}</div></td></tr>${detail !== undefined && html`<tr class="detail"><td colspan="${COLUMNS}">${detail}</td></tr>`}</tbody>`
}

const ANSWERS: Record<Exclude<Outcome, 'success' | 'http_error'>, string> = {
  timeout: 'Timeout',
  unreachable: 'No answer',
  blocked: 'Blocked',
}

/** Its status, or what came instead of one. */
export function answerOf({ outcome, status }: Pick<AttemptSummary, 'outcome' | 'status'>): Html {
  if (outcome === 'success') return html`<span class="ok-text mono">${status}</span>`
  return outcome === 'http_error'
    ? html`<span class="bad-text mono">${status}</span>`
    : html`<span class="bad-text nowrap">${ANSWERS[outcome]}</span>`
}

/** Opens and closes in the log; on its own page it says what it is. */
function eventCell({ delivery, view }: Row): Html {
  const type = html`<span class="event-type">${delivery.eventType}</span>`
  if (view === 'alone') return type
  const address = `/console${deliveryAddress(delivery)}`
  const next: RowView = view === 'open' ? 'closed' : 'open'
  const target = `delivery-${delivery.id}`
  return html`<a class="toggle" id="toggle-${delivery.id}" href="${address}" aria-expanded="${view === 'open' ? 'true' : 'false'}" hx-get="${address}?row=${next}" hx-target="#${target}" hx-select="#${target}" hx-swap="outerHTML ignoreTitle:true">${type}</a>`
}

function dotsOf({ attempts: made, nextAttemptAt }: Delivery, attempts: AttemptSummary[]): Html {
  const label = made === 0 ? 'None yet' : counted(made, 'attempt')
  const hidden = made - attempts.length
  return html`<span class="dots" role="img" aria-label="${label}" title="${label}">${hidden > 0 && html`<small class="muted">${attempts.length > 0 && '+'}${hidden}</small>`}${attempts.map(({ outcome }) => html`<i class="${outcome === 'success' ? 'ok' : 'bad'}"></i>`)}${nextAttemptAt !== null && html`<i class="planned"></i>`}</span>`
}

/** Due within so many milliseconds, it is as good as under way. */
const ABOUT_TO_BE_MADE_MS = 1_000

export function isUnderWay({ nextAttemptAt }: Delivery, now: Date): boolean {
  return nextAttemptAt !== null && nextAttemptAt <= now.getTime() + ABOUT_TO_BE_MADE_MS
}

/** What can be done with a delivery, by its state. */
function rowAction({ user, now }: Visit, webhook: Webhook, { delivery, view }: Row): Content {
  const { id, state, nextAttemptAt } = delivery
  if (isUnderWay(delivery, now)) return html`<span class="muted nowrap">Sending …</span>`
  if (state === 'pending' && nextAttemptAt === null)
    return html`<span class="muted nowrap">Waits its turn</span>`
  if (!mayManage(user, {}) || !webhook.enabled) return false
  const to = deliveryAddress(delivery)
  const button = (verb: string, label: string, style: '' | 'quiet'): Html =>
    action({ to: `${to}/${verb}`, label, style, fields: { row: view }, target: `delivery-${id}` })
  if (state === 'failed') return button('retry', 'Retry', '')
  if (state === 'delivered') return button('resend', 'Resend', 'quiet')
  return button('attempt', 'Retry now', '')
}

/** An open row asks how it is going while an attempt is planned: the sooner it comes, the more often. So does a closed one that somebody has
 *  just done something with. */
function refresh({ now }: Visit, { delivery, view, isInLive }: Row): Content {
  const { id, state, nextAttemptAt } = delivery
  const isWaiting = nextAttemptAt !== null || state === 'pending'
  if (!isWaiting || isInLive || (view === 'closed' && !isUnderWay(delivery, now))) return false
  const seconds = Math.min(
    60,
    Math.max(1, Math.ceil(((nextAttemptAt ?? now.getTime() + 10_000) - now.getTime()) / 5_000)),
  )
  const target = `delivery-${id}`
  return html` hx-get="/console${deliveryAddress(delivery)}?row=${view}" hx-trigger="every ${seconds}s" hx-target="#${target}" hx-select="#${target}" hx-swap="outerMorph ignoreTitle:true"`
}

/** When it is tried again, counting down. */
export function nextAttemptOf({ nextAttemptAt, attempts }: Delivery, now: Date): Content {
  return nextAttemptAt !== null && html`Attempt ${attempts + 1} ${countdownTo(nextAttemptAt, now)}`
}
