/** The details of a delivery: its state, its attempts with their responses, and its payload. */
import type { Phases, Trigger } from '../../../records/attempt.ts'
import { listLastAttempts, type RecordedAttempt } from '../../../records/attempts.ts'
import {
  type Delivery,
  type FailureReason,
  findDeliveryBody,
  TEST_EVENT,
} from '../../../records/deliveries.ts'
import { findEventRow } from '../../../records/events.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import { traceIdOf, traceparentOfDelivery } from '../../../webhooks/transport/traceparent.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { sum } from '../charts.ts'
import { causeFacts } from '../events/cause.ts'
import type { RowView } from '../expandable-row.ts'
import { counted, duration } from '../format.ts'
import { newFormKey } from '../idempotent-form.ts'
import { jsonBlock } from '../json-block.ts'
import { canManageWebhooks, type Visit } from '../page.ts'
import { type RecordReference, recordFact } from '../records/record-link.ts'
import {
  actionForm,
  card,
  codeBlock,
  confirmButton,
  copyableId,
  copyButton,
  type Fact,
  facts,
  pill,
  shortId,
  type Tone,
  timeElement,
} from '../ui.ts'
import { deliveryProof, headerLines } from './delivery-proof.ts'
import {
  attemptResult,
  DELIVERY_STATES,
  deliveryAction,
  deliveryPath,
  isInProgress,
  nextAttempt,
  RETRY_NOW,
  reloadRow,
  resultAttributes,
} from './delivery-rows.ts'

const MAX_ATTEMPTS_SHOWN = 20

interface DeliveryParts {
  attempts: Html
  last: RecordedAttempt | undefined
  facts: Fact[]
  payload: Html
  /** The signed request. */
  proof: Content
}

async function deliveryParts(
  visit: Visit,
  webhook: Webhook,
  delivery: Delivery,
): Promise<DeliveryParts> {
  const { scope, user, now } = visit
  const [attempts, body] = await Promise.all([
    listLastAttempts(scope, delivery.id, MAX_ATTEMPTS_SHOWN),
    findDeliveryBody(scope, delivery.id),
  ])
  const proof = canManageWebhooks(user)
    ? await deliveryProof(visit, webhook, delivery, { body, attempts })
    : html`<p class="muted">Only people who manage webhooks see the signature.</p>`
  return {
    attempts: attemptList(delivery, attempts, now),
    last: attempts[0],
    facts: await deliveryFacts(visit, delivery, body),
    payload: jsonBlock(body?.toString('utf8') ?? '', 'payload'),
    proof: html`<div class="delivery-proof">${proof}</div>`,
  }
}

/** The details in a row of the log. */
export async function deliveryDetail(
  visit: Visit,
  webhook: Webhook,
  delivery: Delivery,
): Promise<Html> {
  const parts = await deliveryParts(visit, webhook, delivery)
  const { tone, text } = stateNote(visit, webhook, delivery)
  return html`<div class="delivery">
    <div>
      ${
        text &&
        html`<div class="note ${tone} note-with-action">
          <span>${text}</span>${cancelButton(visit, delivery, 'open')}
        </div>`
      }
      <h3>Attempts</h3>
      ${parts.attempts}
    </div>
    <div>
      <h3>Payload</h3>
      ${parts.payload}
      ${facts(parts.facts)}
      ${parts.proof}
    </div>
  </div>`
}

/** The content of the page of a delivery. */
export async function deliveryCards(
  visit: Visit,
  webhook: Webhook,
  delivery: Delivery,
): Promise<Html> {
  const row = { delivery, view: 'alone' } as const
  const parts = await deliveryParts(visit, webhook, delivery)
  const { label, tone } = DELIVERY_STATES[delivery.state]
  const { text } = stateNote(visit, webhook, delivery)
  const state = html`<div class="delivery-state card-body">
    ${pill(tone, label)}
    ${text && html`<span>${text}</span>`}
    <div class="actions">${deliveryAction(visit, webhook, row)}${cancelButton(visit, delivery, 'alone')}</div>
  </div>`
  const created: Fact = ['Created', timeElement(delivery.createdAt, visit.now)]
  const attributes = [reloadRow(visit, row), resultAttributes(parts.last)]
  return html`<div id="delivery-${delivery.id}"${attributes}>
    ${card('', state)}
    <div class="delivery delivery-cards">
      <div>${card('Attempts', parts.attempts)}</div>
      <div>
        ${card('', facts([...parts.facts, created]))}
        ${card('Request', html`<div class="card-body">${parts.payload}${parts.proof}</div>`)}
      </div>
    </div>
  </div>`
}

async function deliveryFacts(
  visit: Visit,
  delivery: Delivery,
  body: Buffer | undefined,
): Promise<Fact[]> {
  const { id, eventId, eventType, traceparent, bulkJobId } = delivery
  const event = eventId === null ? undefined : await findEventRow(visit.scope, eventId)
  const record: RecordReference | undefined = body && JSON.parse(body.toString('utf8')).resource
  return [
    ['Delivery', copyableId(id)],
    ['Event', eventFact(delivery)],
    record !== undefined && eventType !== TEST_EVENT && ['Record', await recordFact(visit, record)],
    ...(event ? await causeFacts(visit, event) : []),
    bulkJobId !== null && [
      'Bulk job',
      html`<a href="/console/webhooks/jobs/${bulkJobId}">${shortId(bulkJobId)}</a>`,
    ],
    ['Trace ID', copyableId(traceIdOf(traceparentOfDelivery(delivery, traceparent)))],
  ]
}

function eventFact({ eventId, eventType }: Delivery): Content {
  if (eventType === TEST_EVENT) return 'Test event (not stored)'
  if (eventId === null) return 'Deleted, because it was old'
  return html`<span class="id">
    <a class="mono" href="/console/events/${eventId}">${eventId}</a>${copyButton(eventId, 'ID')}
  </span>`
}

/** Tells the user how the delivery continues, or why it does not. */
function stateNote(
  { user, now }: Visit,
  webhook: Webhook,
  delivery: Delivery,
): { tone: Tone; text: Content } {
  const { state, attempts, nextAttemptAt, failureReason } = delivery
  if (isInProgress(delivery, now))
    return { tone: 'busy', text: `Attempt ${attempts + 1} in progress …` }
  if (nextAttemptAt !== null) {
    const canRetry = canManageWebhooks(user) && webhook.enabled
    return { tone: 'warn', text: [nextAttempt(delivery, now), '. ', canRetry && RETRY_NOW] }
  }
  if (state === 'pending') return { tone: 'busy', text: WAITING_ITS_TURN }
  if (failureReason === null) return { tone: 'ok', text: false }
  const enableFirst = !webhook.enabled && ' To retry it, enable the webhook first.'
  return { tone: 'bad', text: [failureText(failureReason, attempts), enableFirst] }
}

const WAITING_ITS_TURN =
  'Waiting until an earlier event of the same record is delivered or has failed.'

function failureText(reason: FailureReason, attempts: number): string {
  if (reason === 'attempts_exhausted') return `Gave up after ${counted(attempts, 'attempt')}.`
  return FAILURE_TEXTS[reason]
}

const FAILURE_TEXTS: Record<Exclude<FailureReason, 'attempts_exhausted'>, string> = {
  attempt_failed: 'The manual attempt failed.',
  webhook_disabled: 'The webhook was disabled before the event was delivered.',
  webhook_deleted: 'The webhook was deleted before the event was delivered.',
  cancelled: 'The delivery was cancelled.',
}

/** While another attempt is to come. */
function cancelButton({ user, now }: Visit, delivery: Delivery, view: RowView): Content {
  const isWaiting = delivery.nextAttemptAt !== null || delivery.state === 'pending'
  if (!isWaiting || isInProgress(delivery, now) || !canManageWebhooks(user)) return false
  return confirmButton('Cancel', {
    title: 'Cancel this delivery?',
    text: 'No more attempts are made, and the delivery is marked failed. You can still retry it.',
    openStyle: 'quiet',
    body: actionForm({
      to: `${deliveryPath(delivery)}/cancel`,
      label: 'Cancel delivery',
      style: 'danger',
      fields: { row: view, ...newFormKey() },
      target: `delivery-${delivery.id}`,
    }),
  })
}

function attemptList({ attempts: total }: Delivery, attempts: RecordedAttempt[], now: Date): Html {
  if (total === 0) return html`<p class="muted">No attempts yet.</p>`
  const hiddenCount = total - attempts.length
  const hiddenText =
    attempts.length === 0
      ? `${counted(total, 'attempt')}. Their details have been deleted.`
      : `${counted(hiddenCount, 'earlier attempt')} not shown.`
  return html`
    <ol class="attempts" reversed>
      ${attempts.map((attempt, index) => attemptItem(attempt, now, index === 0))}
    </ol>
    ${hiddenCount > 0 && html`<p class="muted">${hiddenText}</p>`}`
}

const TRIGGER_TAGS: Record<Trigger, string | false> = {
  schedule: false,
  retry: 'manual retry',
  resend: 'resend',
  test: 'test',
}

/** The last attempt is open, and each earlier one is folded to a line. */
function attemptItem(attempt: RecordedAttempt, now: Date, isLast: boolean): Html {
  const { number, trigger, outcome, durationMs, startedAt, error } = attempt
  const tag = TRIGGER_TAGS[trigger]
  const head = html`<i class="dot ${outcome === 'success' ? 'ok' : 'bad'}"></i>
    <strong>Attempt ${number}</strong>
    ${attemptResult(attempt)}
    ${tag && html`<span class="tag">${tag}</span>`}
    <span class="attempt-when muted">${duration(durationMs)} · ${timeElement(startedAt, now)}</span>`
  const body = [
    error !== null && html`<p class="attempt-error"><bdi>${error}</bdi></p>`,
    hasDetail(attempt) && attemptDetail(attempt),
  ]
  if (isLast || !body.some(Boolean))
    return html`<li><div class="attempt-head">${head}</div>${body}</li>`
  return html`<li>
    <details><summary class="attempt-head">${head}</summary>${body}</details>
  </li>`
}

const hasDetail = ({ address, phases, responseHeaders, responseBody }: RecordedAttempt): boolean =>
  address !== null || phases !== null || responseHeaders !== null || responseBody !== null

function attemptDetail(attempt: RecordedAttempt): Html {
  const { address, phases, responseHeaders, responseBody, durationMs } = attempt
  return html`<div class="attempt-response">
    ${phases && phaseBar(phases, durationMs)}
    ${address !== null && html`<p class="muted">Connected to <code>${address}</code></p>`}
    ${responseHeaders && headersPart(responseHeaders)}
    ${responseBody !== null && bodyPart(responseBody)}
  </div>`
}

function headersPart(headers: Record<string, string>): Html {
  return html`<p class="response-part">Headers</p>
    ${codeBlock(headerLines(headers), 'response headers')}`
}

function bodyPart(body: string): Html {
  return html`<p class="response-part">Body</p>
    ${body === '' ? html`<p class="muted">Empty</p>` : jsonBlock(body, 'response body')}`
}

const PHASE_NAMES: Record<keyof Phases, string> = {
  dns: 'DNS',
  connect: 'Connect',
  tls: 'TLS',
  first_byte: 'Waiting',
  body: 'Body',
}

/** The least width of a phase, so that a short phase stays visible. */
const MIN_SEGMENT_PERCENT = 0.5

function phaseBar(phases: Phases, durationMs: number): Html {
  const measured = (Object.keys(PHASE_NAMES) as (keyof Phases)[]).flatMap((name) => {
    const ms = phases[name]
    return ms === null ? [] : [{ name, ms }]
  })
  const totalMs = Math.max(durationMs, sum(measured.map(({ ms }) => ms)), 0.1)
  const percent = (ms: number): number => (ms / totalMs) * 100
  let startMs = 0
  const segments = measured.map(({ name, ms }) => {
    const x = percent(startMs).toFixed(2)
    startMs += ms
    const width = Math.max(percent(ms), MIN_SEGMENT_PERCENT).toFixed(2)
    return html`<rect class="phase-${name}" x="${x}%" width="${width}%" height="8"/>`
  })
  const legendItems = measured.map(
    ({ name, ms }) =>
      html`<li><i class="phase-${name}"></i>${PHASE_NAMES[name]} ${duration(ms)}</li>`,
  )
  const isReused = phases.dns === null && phases.connect === null
  return html`<svg class="phases" width="100%" height="8" aria-hidden="true">${segments}</svg>
    <ul class="legend">
      ${legendItems}
      ${isReused && html`<li class="muted">connection reused</li>`}
    </ul>`
}
