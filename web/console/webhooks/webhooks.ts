/** Webhooks: seen by the Owner and the Admins, managed by those of them who may. */
import { randomUUID } from 'node:crypto'
import { TooOften } from '../../../auth/rate-limit.ts'
import { Refused } from '../../../errors.ts'
import { changesBetween } from '../../../records/audit-log.ts'
import {
  type DeliveryHealth,
  findDeliveryHealth,
} from '../../../records/reports/delivery-health.ts'
import type { Notice } from '../../../records/sessions.ts'
import {
  findWebhook,
  insertWebhook,
  listWebhooks,
  updateWebhook,
  type Webhook,
  webhookName,
} from '../../../records/webhooks.ts'
import { newSecret, sealSecret } from '../../../webhooks/transport/secret.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { formKey, formKeyField, MadeBefore, once, SENT_OTHERWISE } from '../once.ts'
import { type Answer, get, isAdmin, type Page, post, type Route, type Visit } from '../page.ts'
import { readOnlyNote } from '../read-only-note.ts'
import {
  bars,
  buttonLink,
  card,
  count,
  type Errors,
  empty,
  form,
  note,
  pill,
  table,
  timeOf,
} from '../ui.ts'
import { crumbsOf, mayManage, targetOf, webhookOf } from './webhook-access.ts'
import {
  blankWebhook,
  checkedWebhook,
  type GivenWebhook,
  givenWebhook,
  urlVerdict,
  webhookFields,
} from './webhook-form.ts'
import { secretShownPage } from './webhook-secret.ts'

export const webhooksRoutes: Route[] = [
  get('/webhooks', isAdmin, webhooksPage),
  post('/webhooks', mayManage, createWebhook),
  get('/webhooks/new', mayManage, (visit) => newWebhookPage(formKey(visit), blankWebhook)),
  post('/webhooks/address', mayManage, judgeUrl),
  get('/webhooks/:webhook/edit', mayManage, async (visit) => editPage(await webhookOf(visit))),
  post('/webhooks/:webhook/edit', mayManage, changeWebhook),
]

async function webhooksPage(visit: Visit): Promise<Page> {
  const { scope, user, now } = visit
  const webhooks = await listWebhooks(scope)
  const ids = webhooks.map(({ id }) => id)
  const health = await findDeliveryHealth(scope, ids, now)
  const canManage = mayManage(user, {})
  return {
    title: 'Webhooks',
    lead: 'What happens in your account is sent to your addresses, signed, and again until it arrives.',
    actions: html`${buttonLink('/webhooks/jobs', 'Bulk jobs', 'quiet')}${canManage && buttonLink('/webhooks/new', 'Create a webhook', 'primary')}`,
    body: html`${!canManage && (await readOnlyNote(visit, 'webhooks'))}${card(
      '',
      webhooks.length === 0 ? noWebhooks(canManage) : webhooksTable(webhooks, health, now),
    )}`,
  }
}

function noWebhooks(canManage: boolean): Html {
  return empty(
    'No webhooks yet',
    html`Instead of asking the API again and again, let it tell you: each event is sent to an address of yours within a second. <a href="/docs/guides/webhooks">How to receive them</a>`,
    canManage && buttonLink('/webhooks/new', 'Create the first webhook', 'primary'),
  )
}

function webhooksTable(webhooks: Webhook[], health: Map<string, DeliveryHealth>, now: Date): Html {
  return table(
    [
      'Webhook',
      'State',
      'Events',
      'Last 24 hours',
      { label: 'Delivered', isNumber: true },
      { label: 'Waiting', isNumber: true },
    ],
    webhooks.map((webhook) => {
      const own = health.get(webhook.id)
      return {
        id: `webhook-${webhook.id}`,
        cells: [
          html`<span class="two-lines webhook-name"><a href="/console/webhooks/${webhook.id}"><bdi>${webhookName(webhook)}</bdi></a>${webhook.description !== '' && html`<small class="muted mono">${webhook.url}</small>`}</span>`,
          stateOf(webhook),
          eventsOf(webhook),
          own && healthBars(own),
          own && shareOf(own),
          own && waitingOf(own, now),
        ],
      }
    }),
    { label: 'Webhooks' },
  )
}

function eventsOf({ eventTypes }: Webhook): Content {
  if (eventTypes.includes('*')) return 'All'
  const [first, ...more] = eventTypes
  return html`<span class="nowrap"><code>${first}</code>${more.length > 0 && html` <span class="muted" title="${more.join(', ')}">+ ${more.length}</span>`}</span>`
}

export function stateOf({ enabled }: Webhook): Html {
  return enabled ? pill('ok', 'Enabled') : pill('quiet', 'Disabled')
}

/** Hour by hour. */
export function healthBars({ hours }: DeliveryHealth): Html {
  const total = (name: 'delivered' | 'failed' | 'waiting'): string =>
    count(hours.reduce((sum, hour) => sum + hour[name], 0))
  return bars(
    hours.map(({ delivered, failed, waiting }) => [
      { tone: 'ok', value: delivered },
      { tone: 'warn', value: waiting },
      { tone: 'bad', value: failed },
    ]),
    `By hour: ${total('delivered')} delivered, ${total('failed')} failed, ${total('waiting')} waiting`,
  )
}

/** Never rounded up: 100 % means all. */
export function shareOf({ share, isSample }: DeliveryHealth): Content {
  if (share === null) return html`<span class="muted">–</span>`
  return `${isSample ? '≈ ' : ''}${Math.floor(share * 1_000) / 10} %`
}

function waitingOf(
  { retrying, pending, countedUpTo, oldestWaitingSince }: DeliveryHealth,
  now: Date,
): Content {
  const waiting = retrying + pending
  if (waiting === 0) return html`<span class="muted">–</span>`
  return html`<span class="two-lines at-end"><span>${atMost(waiting, countedUpTo)}</span><small class="muted nowrap">oldest ${timeOf(oldestWaitingSince, now)}</small></span>`
}

/** `1,000+`, where the count has ended. */
export function atMost(value: number, countedUpTo: number): string {
  return value >= countedUpTo ? `${count(countedUpTo)}+` : count(value)
}

function newWebhookPage(
  key: string,
  given: GivenWebhook,
  errors: Errors = {},
  problem?: string,
): Page {
  return {
    title: 'Create a webhook',
    crumbs: [{ label: 'Webhooks', to: '/webhooks' }],
    status: problem !== undefined || Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: card('', [
      form(
        { to: '/webhooks', submit: 'Create the webhook', cancel: '/webhooks', errors, problem },
        [formKeyField(key), webhookFields(given, errors)],
      ),
    ]),
  }
}

async function createWebhook(visit: Visit): Promise<Answer> {
  const { config, user, now } = visit
  const given = givenWebhook(visit.form)
  const { webhook, errors } = checkedWebhook(given, config)
  if (Object.keys(errors).length > 0) return newWebhookPage(formKey(visit), given, errors)
  const secret = newSecret()
  try {
    const made = await visit.change((scope) =>
      once(visit, scope, async () => {
        const made = await insertWebhook(
          scope,
          { ...webhook, createdBy: user.id },
          (id) => sealSecret(config.secretKey, id, secret),
          now,
        )
        await visit.audit(scope, {
          action: 'webhook.created',
          target: targetOf(made),
          details: auditedOf(made),
        })
        return made
      }),
    )
    return secretShownPage(
      made,
      { current: secret },
      'The webhook is ready',
      note(
        'warn',
        'Copy the secret now: it is shown this once. Your receiver needs it to tell what comes from here.',
      ),
    )
  } catch (error) {
    // Too many of them.
    if (error instanceof Refused) return newWebhookPage(formKey(visit), given, {}, error.message)
    if (error instanceof MadeBefore && error.isOther)
      return newWebhookPage(randomUUID(), given, {}, SENT_OTHERWISE)
    if (error instanceof MadeBefore)
      return { to: `/webhooks/${error.id}/secret`, notice: MADE_BEFORE }
    throw error
  }
}

const MADE_BEFORE: Notice = {
  kind: 'ok',
  text: 'The webhook was created when the form was sent before. If you have not seen its signing secret, show it here.',
}

const auditedOf = ({ url, description, eventTypes, ordering }: Webhook) => ({
  url,
  description,
  event_types: eventTypes.join(', '),
  ordering,
})

/** Says of an address, while the form is filled in, whether it can be used. */
async function judgeUrl({ form: given, config, user, throttle }: Visit): Promise<Page> {
  const url = given.get('url') ?? ''
  return {
    ...newWebhookPage('', givenWebhook(given)),
    body: urlVerdict(url.trim() === '' ? undefined : await verdictOf()),
  }

  async function verdictOf(): Promise<Parameters<typeof urlVerdict>[0]> {
    try {
      await throttle('webhook_url', user.id)
    } catch (error) {
      if (error instanceof TooOften) return { problem: error.message }
      throw error
    }
    const { webhook, errors } = checkedWebhook({ ...blankWebhook, url }, config)
    return errors.url ? { problem: errors.url.join(' ') } : { url: webhook.url }
  }
}

function editPage(webhook: Webhook, given: GivenWebhook = webhook, errors: Errors = {}): Page {
  const to = `/webhooks/${webhook.id}`
  return {
    title: `Edit ${webhookName(webhook)}`,
    crumbs: crumbsOf(webhook),
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: card('', [
      form(
        { to: `${to}/edit`, submit: 'Save', cancel: `${to}/settings`, errors },
        webhookFields(given, errors),
      ),
      html`<p class="muted">What is on the schedule is sent to the new address. A change of events or order counts for events from now on.</p>`,
    ]),
  }
}

async function changeWebhook(visit: Visit): Promise<Answer> {
  const found = await webhookOf(visit)
  const given = givenWebhook(visit.form)
  const { webhook, errors } = checkedWebhook(given, visit.config)
  if (Object.keys(errors).length > 0) return editPage(found, given, errors)
  await visit.change(async (scope) => {
    const before = await findWebhook(scope, found.id)
    const after = await updateWebhook(scope, found.id, webhook, visit.now)
    if (!before || !after) visit.ctx.throw(404)
    const changes = changesBetween(auditedOf(before), auditedOf(after))
    if (changes)
      await visit.audit(scope, {
        action: 'webhook.updated',
        target: targetOf(after),
        details: { changes },
      })
  })
  return {
    to: `/webhooks/${found.id}/settings`,
    notice: { kind: 'ok', text: 'The webhook is changed, from the next attempt on.' },
  }
}
