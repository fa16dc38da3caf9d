/** The table of deliveries. Each delivery has its own `tbody`, which is updated in place. */
import type { Outcome } from '../../../records/attempt.ts'
import { type AttemptSummary, listAttemptSummaries } from '../../../records/attempts.ts'
import type { Delivery, DeliveryState } from '../../../records/deliveries.ts'
import { type Webhook, webhookName } from '../../../records/webhooks.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { expandableRow, type RowView, rowToggle } from '../expandable-row.ts'
import { counted, duration } from '../format.ts'
import { reloadEvery } from '../htmx.ts'
import { newFormKey } from '../idempotent-form.ts'
import { canManageWebhooks, type Visit } from '../page.ts'
import {
  actionForm,
  copyableShortId,
  countdownTo,
  numberColumn,
  pill,
  type Tone,
  tableFrame,
  timeElement,
  twoLines,
} from '../ui.ts'

export const DELIVERY_STATES: Record<DeliveryState, { label: string; tone: Tone }> = {
  pending: { label: 'Pending', tone: 'busy' },
  retrying: { label: 'Retrying', tone: 'warn' },
  delivered: { label: 'Delivered', tone: 'ok' },
  failed: { label: 'Failed', tone: 'bad' },
}

export function deliveryPath({ webhookId, id }: Pick<Delivery, 'webhookId' | 'id'>): string {
  return `/webhooks/${webhookId}/deliveries/${id}`
}

interface LogRow {
  delivery: Delivery
  webhook: Webhook
  /** The last attempts, oldest first. */
  attempts: AttemptSummary[]
  view: RowView
  detail?: Content
  /** The whole log reloads, so the row does not need to. */
  isInLiveLog?: boolean
}

const MAX_DOTS = 12

export async function withAttempts(
  { scope }: Visit,
  deliveries: Delivery[],
): Promise<Pick<LogRow, 'delivery' | 'attempts'>[]> {
  const ids = deliveries.map(({ id }) => id)
  const attempts = Map.groupBy(
    await listAttemptSummaries(scope, ids, MAX_DOTS),
    ({ deliveryId }) => deliveryId,
  )
  return deliveries.map((delivery) => ({ delivery, attempts: attempts.get(delivery.id) ?? [] }))
}

const COLUMNS = [
  'State',
  'Event',
  'ID',
  'Last attempt',
  numberColumn('Duration'),
  'Attempts',
  'Created',
  { label: 'Actions', isHidden: true },
]

export function deliveriesTable(visit: Visit, rows: LogRow[]): Html {
  const bodies = rows.map((row) => deliveryRow(visit, row))
  return tableFrame('Deliveries', COLUMNS, bodies, 'log')
}

function deliveryRow(visit: Visit, row: LogRow): Html {
  const { delivery, webhook, attempts, view, detail } = row
  const { id, state, createdAt } = delivery
  const last = attempts.at(-1)
  const cells = [
    pill(DELIVERY_STATES[state].tone, DELIVERY_STATES[state].label),
    eventCell(row),
    copyableShortId(id),
    last && twoLines(attemptResult(last), timeElement(last.startedAt, visit.now)),
    last && duration(last.durationMs),
    attemptDots(delivery, attempts),
    html`<span class="nowrap">${timeElement(createdAt, visit.now)}</span>`,
    html`<div class="row-actions">${deliveryAction(visit, webhook, row)}</div>`,
  ]
  const reloadAttributes = [reloadRow(visit, row), resultAttributes(last)]
  return expandableRow(COLUMNS, { id: `delivery-${id}`, view, cells, detail, reloadAttributes })
}

/** What client/announce.js announces at the end of an attempt that the user has started. */
export function resultAttributes(last: AttemptSummary | undefined): Content {
  if (!last) return false
  const { number, outcome, error } = last
  return outcome === 'success'
    ? html` data-tone="ok" data-result="Attempt ${number} succeeded."`
    : html` data-tone="bad" data-result="Attempt ${number} failed. ${error}"`
}

const NO_RESPONSE: Record<Exclude<Outcome, 'success' | 'http_error'>, string> = {
  timeout: 'Timeout',
  unreachable: 'No response',
  invalid_response: 'Invalid response',
  blocked: 'Blocked',
}

/** The response status, or why there was no response. */
export function attemptResult({
  outcome,
  status,
}: Pick<AttemptSummary, 'outcome' | 'status'>): Html {
  if (outcome === 'success') return html`<span class="tone ok mono">${status}</span>`
  if (outcome === 'http_error') return html`<span class="tone bad mono">${status}</span>`
  return html`<span class="tone bad nowrap">${NO_RESPONSE[outcome]}</span>`
}

/** CSS hides the second line of cells in the list of the deliveries of one webhook. */
function eventCell({ delivery, webhook, view }: LogRow): Html {
  const rowId = `delivery-${delivery.id}`
  const to = deliveryPath(delivery)
  const event = rowToggle({ rowId, to, view, className: 'event-type' }, delivery.eventType)
  const link = html`<a href="/console/webhooks/${webhook.id}"><bdi>${webhookName(webhook)}</bdi></a>`
  return twoLines(event, [link, !webhook.enabled && ', disabled'])
}

export function attemptDots(delivery: Delivery, attempts: AttemptSummary[]): Html {
  const total = delivery.attempts
  const label = total === 0 ? 'None yet' : counted(total, 'attempt')
  const hiddenCount = total - attempts.length
  const sign = attempts.length > 0 && '+'
  return html`<span class="dots" role="img" aria-label="${label}" title="${label}">
    ${hiddenCount > 0 && html`<small class="muted">${sign}${hiddenCount}</small>`}
    ${attempts.map(({ outcome }) => html`<i class="${outcome === 'success' ? 'ok' : 'bad'}"></i>`)}
    ${delivery.nextAttemptAt !== null && html`<i class="planned"></i>`}
  </span>`
}

/** An attempt that is due within this time counts as in progress. */
const ABOUT_TO_START_MS = 1_000

export function isInProgress({ nextAttemptAt }: Delivery, now: Date): boolean {
  return nextAttemptAt !== null && nextAttemptAt <= now.getTime() + ABOUT_TO_START_MS
}

/** Explains the button "Retry now". */
export const RETRY_NOW = '“Retry now” makes this attempt immediately. It does not add another one.'

/** The button that sends a delivery again, or why there is none. */
export function deliveryAction(
  { user, now }: Visit,
  webhook: Webhook,
  { delivery, view }: Pick<LogRow, 'delivery' | 'view'>,
): Content {
  const { id, state, nextAttemptAt } = delivery
  if (isInProgress(delivery, now)) return html`<span class="muted nowrap">Sending …</span>`
  if (state === 'pending' && nextAttemptAt === null)
    return html`<span class="muted nowrap">Waiting its turn</span>`
  if (!canManageWebhooks(user) || !webhook.enabled) return false
  const to = deliveryPath(delivery)
  const inPlace = { fields: { row: view, ...newFormKey() }, target: `delivery-${id}` }
  if (state === 'failed') return actionForm({ to: `${to}/retry`, label: 'Retry', ...inPlace })
  if (state === 'delivered')
    return actionForm({
      to: `${to}/resend`,
      label: 'Resend',
      style: view === 'alone' ? '' : 'quiet',
      ...inPlace,
    })
  return actionForm({ to: `${to}/attempt`, label: 'Retry now', title: RETRY_NOW, ...inPlace })
}

const MAX_RELOAD_SECONDS = 60
const RELOADS_PER_WAIT = 5
/** Assumed for a delivery that has no scheduled attempt, because it waits for an earlier
 *  delivery. */
const ASSUMED_WAIT_MS = 10_000

/** An open row reloads while another attempt is to come, a closed row only while an attempt is in
 *  progress. Rows in a live log do not reload. */
export function reloadRow(
  { now }: Visit,
  { delivery, view, isInLiveLog }: Pick<LogRow, 'delivery' | 'view' | 'isInLiveLog'>,
): Content {
  const { id, state, nextAttemptAt } = delivery
  const isWaiting = nextAttemptAt !== null || state === 'pending'
  if (!isWaiting || isInLiveLog) return false
  if (view === 'closed' && !isInProgress(delivery, now)) return false
  const waitMs = nextAttemptAt === null ? ASSUMED_WAIT_MS : nextAttemptAt - now.getTime()
  const intervalSeconds = Math.ceil(waitMs / 1_000 / RELOADS_PER_WAIT)
  const seconds = Math.min(MAX_RELOAD_SECONDS, Math.max(1, intervalSeconds))
  return reloadEvery(seconds, `/console${deliveryPath(delivery)}?row=${view}`, `delivery-${id}`)
}

/** `Attempt 3 in 5 min`, with a live countdown. */
export function nextAttempt({ nextAttemptAt, attempts }: Delivery, now: Date): Content {
  return nextAttemptAt !== null && html`Attempt ${attempts + 1} ${countdownTo(nextAttemptAt, now)}`
}
