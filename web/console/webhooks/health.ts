/** Shows the health of a webhook. */
import type { Outcome } from '../../../records/attempt.ts'
import {
  findWebhookHealth,
  type HealthState,
  type Undelivered,
  type WebhookHealth,
} from '../../../records/reports/webhook-health.ts'
import { DAY_MS } from '../../../records/time-units.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { zoneName } from '../../shared/zone.ts'
import { type Series, smallBars, sum } from '../charts.ts'
import { count, counted, formatDay, formatMoment } from '../format.ts'
import { canManageWebhooks, type Visit } from '../page.ts'
import { formatPercent } from '../requests/request-figures.ts'
import { actionForm, NO_VALUE, pill, type Tone, timeElement } from '../ui.ts'
import { attemptResult } from './delivery-rows.ts'

const STATES: Record<HealthState, { label: string; tone: Tone }> = {
  healthy: { label: 'Healthy', tone: 'ok' },
  degraded: { label: 'Degraded', tone: 'warn' },
  failing: { label: 'Failing', tone: 'bad' },
  disabled: { label: 'Disabled', tone: 'quiet' },
  no_traffic: { label: 'No traffic', tone: 'quiet' },
}

const PILL_ID = 'webhook-state'
const ALERT_ID = 'webhook-alert'
/** The IDs of the elements that reload together with the delivery log (log.ts). */
export const HEALTH_ELEMENT_IDS = [PILL_ID, ALERT_ID]

/** Throws 404 if the webhook was deleted meanwhile. */
export async function loadHealth(
  { scope, ctx, now }: Visit,
  { id }: Webhook,
): Promise<WebhookHealth> {
  return (await findWebhookHealth(scope, [id], now)).get(id) ?? ctx.throw(404)
}

export function healthPill(
  { state, isDisabledByService }: WebhookHealth,
  isSecretUnreadable: boolean,
): Html {
  if (isSecretUnreadable) return pill('bad', 'Paused')
  const { label, tone } = STATES[state]
  return pill(isDisabledByService ? 'bad' : tone, label)
}

/** The pill on the page of a webhook. It reloads together with the delivery log. */
export function reloadedHealthPill(health: WebhookHealth, isSecretUnreadable: boolean): Html {
  return html`<span id="${PILL_ID}">${healthPill(health, isSecretUnreadable)}</span>`
}

/** The user should look at these webhooks first. */
export function isInTrouble({ state, isDisabledByService }: WebhookHealth): boolean {
  return state === 'failing' || isDisabledByService
}

/** Lists show webhooks in trouble first, then degraded ones. Among these, the ones with the largest
 *  share of failed attempts come first. */
export function urgencyOf(health: WebhookHealth, isSecretUnreadable: boolean): number {
  const { succeeded, failed } = health.lastDay
  const failedShare = failed / Math.max(1, succeeded + failed)
  if (isSecretUnreadable || isInTrouble(health)) return 4 + failedShare
  return (health.state === 'degraded' ? 2 : 0) + failedShare
}

/** The alert on the page of a webhook that is failing or disabled. Without an alert, the element is
 *  empty, so that an alert can appear while the page is open. */
export function healthAlert(visit: Visit, webhook: Webhook, health: WebhookHealth): Html {
  return html`<div id="${ALERT_ID}">${alertOf(visit, webhook, health)}</div>`
}

function alertOf(visit: Visit, { id, disabledAt }: Webhook, health: WebhookHealth): Content {
  const { state, isDisabledByService, failingSince } = health
  const { now, user } = visit
  if (state === 'failing') return failingAlert(visit, health)
  if (state !== 'disabled') return false
  const when = timeElement(disabledAt, now)
  const reason = isDisabledByService
    ? html`<strong>Disabled automatically ${when}.</strong> ${outageText(failingSince)}`
    : html`<strong>Disabled ${when}.</strong>`
  const tone = isDisabledByService ? 'bad' : 'warn'
  return html`<aside class="note ${tone} note-with-action" aria-label="Disabled">
    <span>
      ${reason} Nothing is sent. After you enable it again, you can send the events it missed.
    </span>
    ${canManageWebhooks(user) && actionForm({ to: `/webhooks/${id}/enable`, label: 'Enable' })}
  </aside>`
}

/** `since` is null if an attempt was in flight when the service disabled the webhook, and then
 *  succeeded. */
function outageText(since: number | null): Content {
  return since !== null && html`No attempt has succeeded since ${moment(since)}.`
}

function failingAlert({ config, now }: Visit, health: WebhookHealth): Html {
  const { failingSince, failures, lastAttempt, lastSuccessAt, undelivered } = health
  const days = config.disableWebhooksAfterDays
  const disabledOn = days === 0 ? 0 : (failingSince ?? 0) + days * DAY_MS
  return html`<aside class="note bad banner" aria-label="Failing">
    <strong>Failing since ${moment(failingSince)}.</strong>
    <span>
      ${counted(failures, 'attempt')} in a row failed, most recently with
      ${lastAttempt && failureName(lastAttempt)}.
      ${lastSuccessAt !== null && html`The last success was ${timeElement(lastSuccessAt, now)}.`}
      ${waitingText(undelivered)}
      ${disabledOn > now.getTime() && `It will be disabled on ${formatDay(disabledOn)} if nothing gets through.`}
    </span>
  </aside>`
}

const FAILURE_NAMES: Partial<Record<Outcome, string>> = {
  timeout: 'a timeout',
  unreachable: 'no response',
  invalid_response: 'an invalid response',
  blocked: 'a blocked request',
}

function failureName(attempt: NonNullable<WebhookHealth['lastAttempt']>): Content {
  return FAILURE_NAMES[attempt.outcome] ?? attemptResult(attempt)
}

/** `21 Nov 14:30 CET`. */
function moment(at: number | null): Content {
  return at !== null && html`<span class="nowrap">${formatMoment(at)} ${zoneName(at)}</span>`
}

function waitingText(undelivered: Undelivered): string {
  const { retrying, pending, countedUpTo } = undelivered
  const waiting = retrying + pending
  if (waiting === 0) return ''
  const noun = waiting === 1 ? 'delivery is' : 'deliveries are'
  return `${limitedCount(waiting, countedUpTo)} ${noun} waiting.`
}

export function attemptSeries(hours: WebhookHealth['hours']): Series[] {
  return [
    { name: 'Succeeded', tone: 'first', values: hours.map(({ succeeded }) => succeeded) },
    { name: 'Failed', tone: 'third', values: hours.map(({ failed }) => failed) },
  ]
}

export function attemptBars({ hours }: WebhookHealth): Html {
  const series = attemptSeries(hours)
  const totals = series.map(({ name, values }) => `${count(sum(values))} ${name.toLowerCase()}`)
  return smallBars(series, `Attempts by hour: ${totals.join(', ')}`)
}

export function succeededShare({ succeeded, failed }: WebhookHealth['lastDay']): Content {
  if (succeeded + failed === 0) return NO_VALUE
  return formatPercent(succeeded, succeeded + failed)
}

/** A count that links to what it counts, unless it is 0. */
export function linkedCount(value: number, to: string, limit = Number.POSITIVE_INFINITY): Html {
  return value === 0
    ? html`<span class="muted">0</span>`
    : html`<a href="/console${to}">${limitedCount(value, limit)}</a>`
}

/** `1,000+` if counting stopped at the limit. */
export function limitedCount(value: number, limit: number): string {
  return value >= limit ? `${count(limit)}+` : count(value)
}
