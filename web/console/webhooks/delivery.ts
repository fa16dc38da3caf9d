/** One delivery: what was sent, what was answered, and what can be done about it. */

import { Refused } from '../../../errors.ts'
import { type Attempt, listLastAttempts, type Phases } from '../../../records/attempts.ts'
import type { WriteScope } from '../../../records/database/scope.ts'
import {
  type Delivery,
  type FailureReason,
  findDelivery,
  findDeliveryBody,
  type Trigger,
} from '../../../records/deliveries.ts'
import {
  attemptNow,
  cancelDelivery,
  resendDelivery,
  retryDelivery,
} from '../../../records/delivery-commands.ts'
import { findSealedSecrets, type Webhook } from '../../../records/webhooks.ts'
import { openSecret, SecretUnreadable, signingKeys } from '../../../webhooks/transport/secret.ts'
import { deliveryHeaders } from '../../../webhooks/transport/sign.ts'
import { deliveryCurlCommand } from '../../shared/curl.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { BASH_NOTE, needsBash } from '../../shared/shell.ts'
import { jsonBlock } from '../json-block.ts'
import { type Answer, get, isAdmin, type Page, post, type Route, type Visit } from '../page.ts'
import {
  action,
  bytes,
  card,
  codeBlock,
  confirmed,
  counted,
  duration,
  facts,
  idOf,
  note,
  timeOf,
} from '../ui.ts'
import { opensslCommand } from './delivery-commands.ts'
import {
  answerOf,
  deliveriesTable,
  deliveryAddress,
  isUnderWay,
  nextAttemptOf,
  type RowView,
  rowsOf,
} from './delivery-log.ts'
import { crumbsOf, mayManage, targetOf, webhookOf } from './webhook-access.ts'

const PATH = '/webhooks/:webhook/deliveries/:delivery'

export const deliveryRoutes: Route[] = [
  get(PATH, isAdmin, deliveryPage),
  post(`${PATH}/retry`, mayManage, (visit) => act(visit, RETRY)),
  post(`${PATH}/resend`, mayManage, (visit) => act(visit, RESEND)),
  post(`${PATH}/attempt`, mayManage, (visit) => act(visit, ATTEMPT)),
  post(`${PATH}/cancel`, mayManage, (visit) => act(visit, CANCEL)),
]

async function deliveryOf({ scope, params, ctx }: Visit, webhook: Webhook): Promise<Delivery> {
  const delivery = await findDelivery(scope, params.delivery?.toLowerCase() ?? '')
  return delivery?.webhookId === webhook.id ? delivery : ctx.throw(404)
}

const viewOf = (given: string | null): RowView =>
  given === 'open' || given === 'closed' ? given : 'alone'

/** The row of the log alone on its page. The log takes it from here when it is opened, closed or changed. */
async function deliveryPage(visit: Visit): Promise<Page> {
  const webhook = await webhookOf(visit)
  const delivery = await deliveryOf(visit, webhook)
  const view = viewOf(visit.query.get('row'))
  const [row] = await rowsOf(visit, [delivery])
  const detail = view === 'closed' ? undefined : await detailOf(visit, webhook, delivery, view)
  return {
    title: delivery.eventType,
    lead: html`To <bdi class="mono">${webhook.url}</bdi>`,
    crumbs: crumbsOf(webhook),
    body: card('', row && deliveriesTable(visit, webhook, [{ ...row, view, detail }])),
  }
}

const SHOWN_ATTEMPTS = 20

async function detailOf(
  visit: Visit,
  webhook: Webhook,
  delivery: Delivery,
  view: RowView,
): Promise<Html> {
  const { scope, user, now } = visit
  const [attempts, body] = await Promise.all([
    listLastAttempts(scope, delivery.id, SHOWN_ATTEMPTS),
    findDeliveryBody(scope, delivery.id),
  ])
  const text = body?.toString('utf8') ?? ''
  // Below the heading of the log, or of the page.
  const heading = (words: string): Html =>
    view === 'alone' ? html`<h2>${words}</h2>` : html`<h3>${words}</h3>`
  return html`<div class="delivery"><div class="delivery-attempts">${standing(visit, webhook, delivery, view)}${heading('Attempts')}${attemptList(delivery, attempts, now)}</div><div class="delivery-body">${heading('Payload')}${jsonBlock(text, 'payload')}${facts(
    [
      ['Delivery', idOf(delivery.id)],
      ['Event', delivery.eventId === null ? 'None on record' : idOf(delivery.eventId)],
      ['Created', timeOf(delivery.createdAt, now)],
    ],
  )}</div><div class="delivery-proof">${mayManage(user, {}) ? await proof(visit, webhook, delivery, { body, attempts }) : html`<p class="muted">How it was signed is shown to those who manage webhooks.</p>`}</div></div>`
}

const REASONS: Record<FailureReason, string> = {
  attempts_exhausted: 'All attempts of the schedule failed.',
  attempt_failed: 'The attempt by hand failed.',
  webhook_disabled: 'The webhook was disabled before it arrived.',
  webhook_deleted: 'The webhook was deleted before it arrived.',
  cancelled: 'It was cancelled.',
}

/** What becomes of it next, or why nothing does. */
function standing(
  { user, now }: Visit,
  webhook: Webhook,
  delivery: Delivery,
  view: RowView,
): Content {
  const { state, nextAttemptAt, failureReason } = delivery
  if (isUnderWay(delivery, now))
    return note('busy', html`Attempt ${delivery.attempts + 1} is being made.`)
  if (nextAttemptAt !== null)
    return html`<div class="note warn next-attempt"><span>${nextAttemptOf(delivery, now)}</span>${mayManage(user, {}) && cancelButton(delivery, view)}</div>`
  if (state === 'pending')
    return html`<div class="note busy next-attempt"><span>It waits for an earlier event of its record, which has not arrived yet.</span>${mayManage(user, {}) && cancelButton(delivery, view)}</div>`
  if (state !== 'failed' || failureReason === null) return false
  return note('bad', [
    REASONS[failureReason],
    !webhook.enabled && ' The webhook is disabled: enable it to retry.',
  ])
}

function cancelButton(delivery: Delivery, view: RowView): Html {
  return confirmed('Cancel', {
    title: 'Cancel this delivery?',
    text: 'No more attempts are made, and it ends as failed. You can retry it by hand later.',
    style: 'quiet',
    body: action({
      to: `${deliveryAddress(delivery)}/cancel`,
      label: 'Cancel the delivery',
      style: 'danger',
      fields: { row: view },
      target: `delivery-${delivery.id}`,
    }),
  })
}

function attemptList({ attempts: made }: Delivery, attempts: Attempt[], now: Date): Html {
  if (made === 0) return html`<p class="muted">None has been made yet.</p>`
  const gone = made - attempts.length
  return html`<ol class="attempts" reversed>${attempts.map((attempt, index) => attemptItem(attempt, now, index === 0))}</ol>${
    gone > 0 &&
    html`<p class="muted">${attempts.length === 0 ? `${counted(made, 'attempt')} ${made === 1 ? 'was' : 'were'} made. What was answered is not kept any more.` : `${counted(gone, 'earlier attempt')} ${gone === 1 ? 'is' : 'are'} not shown.`}</p>`
  }`
}

const TRIGGERS: Record<Trigger, string | false> = {
  schedule: false,
  retry: 'by hand',
  resend: 'resent by hand',
  test: 'test',
}

/** The last one in full; of those before it, what was answered opens. */
function attemptItem(attempt: Attempt, now: Date, isLast: boolean): Html {
  const { number, trigger, outcome, durationMs, startedAt, error } = attempt
  const trail = TRIGGERS[trigger]
  return html`<li><div class="attempt-head"><i class="dot ${outcome === 'success' ? 'ok' : 'bad'}"></i><strong>Attempt ${number}</strong>${answerOf(attempt)}${trail && html`<span class="tag">${trail}</span>`}<span class="attempt-when muted">${duration(durationMs)} · ${timeOf(startedAt, now)}</span></div>${error !== null && html`<p class="attempt-error"><bdi>${error}</bdi></p>`}${
    isLast || isBare(attempt)
      ? answerDetail(attempt)
      : html`<details><summary>Details</summary>${answerDetail(attempt)}</details>`
  }</li>`
}

const isBare = ({ address, phases, responseHeaders, responseBody }: Attempt): boolean =>
  address === null && phases === null && responseHeaders === null && responseBody === null

function answerDetail(attempt: Attempt): Html {
  if (isBare(attempt)) return html``
  const { address, phases, responseHeaders, responseBody, durationMs } = attempt
  return html`<div class="answer">${phases && phaseBar(phases, durationMs)}${
    address !== null && html`<p class="muted">Answered by <code>${address}</code></p>`
  }${
    responseHeaders &&
    html`<p class="answer-part">Headers</p>${codeBlock(
      Object.entries(responseHeaders)
        .map(([name, value]) => `${name}: ${value}`)
        .join('\n'),
      'response headers',
    )}`
  }${responseBody !== null && html`<p class="answer-part">Body</p>${responseBody === '' ? html`<p class="muted">It is empty.</p>` : jsonBlock(responseBody, 'response body')}`}</div>`
}

const PHASES: Record<keyof Phases, string> = {
  dns: 'Name',
  connect: 'Connection',
  tls: 'TLS',
  first_byte: 'Waiting',
  body: 'Body',
}

/** How its time was spent. */
function phaseBar(phases: Phases, durationMs: number): Html {
  const spent = (Object.keys(PHASES) as (keyof Phases)[]).flatMap((name) => {
    const ms = phases[name]
    return ms === null ? [] : [{ name, ms }]
  })
  const total = Math.max(
    durationMs,
    spent.reduce((sum, { ms }) => sum + ms, 0),
    0.1,
  )
  let at = 0
  const parts = spent.map(({ name, ms }) => {
    const x = at
    at += ms
    return html`<rect class="phase-${name}" x="${((x / total) * 100).toFixed(2)}%" width="${Math.max((ms / total) * 100, 0.5).toFixed(2)}%" height="8"/>`
  })
  return html`<svg class="phases" width="100%" height="8" aria-hidden="true">${parts}</svg><ul class="phase-names">${spent.map(({ name, ms }) => html`<li><i class="phase-${name}"></i>${PHASES[name]} ${duration(ms)}</li>`)}${phases.connect === null && html`<li class="muted">over an open connection</li>`}</ul>`
}

/** What was sent, to the byte, and how to check it. */
async function proof(
  visit: Visit,
  webhook: Webhook,
  delivery: Delivery,
  { body, attempts }: { body?: Buffer; attempts: Attempt[] },
): Promise<Html> {
  if (!body) return html``
  const text = body.toString('utf8')
  const last = attempts[0]
  const sent = await headersOf(
    visit,
    webhook,
    delivery,
    body,
    new Date(last?.startedAt ?? visit.now),
  )
  const fresh = await headersOf(visit, webhook, delivery, body, visit.now)
  if (!sent || !fresh)
    return note(
      'warn',
      'How it is signed cannot be shown: the secret cannot be read. SECRET_KEY has changed since it was made.',
    )
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}`)
  return html`<details><summary>Headers</summary><p class="muted">${last ? `As attempt ${last.number} sent them` : 'As an attempt now would send them'}, with the secret that signs now.</p>${codeBlock(lines.join('\n'), 'request headers')}</details>
<details><summary>Verify this</summary><p>The header <code>X-Service-Signature</code> is the HMAC-SHA256 of these ${bytes(body.length)}, to the byte and with no line break at their end, keyed with the whole signing secret, in lower-case hexadecimal:</p>${codeBlock(text, 'body as it is sent')}<p>It is</p>${codeBlock(sent['x-service-signature'] ?? '', 'signature')}<p>With your secret in the place of the dots, this prints the same:</p>${codeBlock(opensslCommand(text), 'openssl command')}${needsBash(text) && html`<p class="muted">${BASH_NOTE}</p>`}</details>
<details><summary>Send it yourself</summary><p>The same request, to the address of the webhook, signed a moment ago. Libraries that check the time take it for five minutes.</p>${codeBlock(deliveryCurlCommand(webhook.url, fresh, text), 'curl command')}${needsBash(webhook.url, text) && html`<p class="muted">${BASH_NOTE}</p>`}</details>`
}

/** Undefined: the secret cannot be read. */
async function headersOf(
  { scope, config }: Visit,
  webhook: Webhook,
  { id }: Delivery,
  body: Buffer,
  at: Date,
): Promise<Record<string, string> | undefined> {
  const sealed = await findSealedSecrets(scope, webhook.id)
  try {
    return (
      sealed &&
      deliveryHeaders(
        signingKeys(openSecret(config.secretKey, webhook.id, sealed.current)),
        id,
        body,
        at,
      )
    )
  } catch (error) {
    if (error instanceof SecretUnreadable) return undefined
    throw error
  }
}

interface Act {
  change: (scope: WriteScope, id: string, now: Date) => Promise<Delivery | undefined>
  /** For the audit log. */
  name: string
  said: string
}

const RETRY: Act = {
  change: retryDelivery,
  name: 'delivery_retried',
  said: 'One more attempt is made at once.',
}
const RESEND: Act = {
  change: resendDelivery,
  name: 'delivery_resent',
  said: 'It is sent once more. Whatever comes of it, it stays delivered.',
}
const ATTEMPT: Act = {
  change: attemptNow,
  name: 'delivery_attempted',
  said: 'The next attempt is made at once.',
}
const CANCEL: Act = {
  change: cancelDelivery,
  name: 'delivery_cancelled',
  said: 'The delivery is cancelled: no more attempts are made.',
}

async function act(visit: Visit, { change, name, said }: Act): Promise<Answer> {
  const webhook = await webhookOf(visit)
  const { id, eventType } = await deliveryOf(visit, webhook)
  const view = viewOf(visit.form.get('row'))
  // The row of the log is changed in place; without JavaScript the delivery's own page says what comes of it.
  const isInPlace = visit.ctx.get('HX-Request') !== '' && view !== 'alone'
  const to = `${deliveryAddress({ webhookId: webhook.id, id })}${isInPlace ? `?row=${view}` : ''}`
  try {
    await visit.change(async (scope) => {
      if (!(await change(scope, id, visit.now))) visit.ctx.throw(404)
      await visit.audit(scope, {
        action: `webhook.${name}`,
        target: targetOf(webhook),
        details: { delivery_id: id, event_type: eventType },
      })
    })
  } catch (error) {
    // It has changed since the row was drawn: the row is drawn again, and says why.
    if (error instanceof Refused) return { to, notice: { kind: 'bad', text: error.message } }
    throw error
  }
  return { to, notice: { kind: 'ok', text: said } }
}
