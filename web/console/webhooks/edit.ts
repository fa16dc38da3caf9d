/** The pages that create and edit a webhook. */
import { Refused } from '../../../errors.ts'
import { operationalTypes } from '../../../generated/events.ts'
import { type Webhook, webhookName } from '../../../records/webhooks.ts'
import { addWebhook, changeWebhook } from '../../../webhooks/webhook-changes.ts'
import { type Content, html } from '../../shared/html.ts'
import { type Errors, formPage, hasErrors } from '../form-fields.ts'
import {
  AlreadyCreated,
  createOnce,
  FORM_KEY,
  formKey,
  RESENT_WITH_CHANGES,
} from '../idempotent-form.ts'
import {
  type ConsolePage,
  canManageWebhooks,
  get,
  type PageResult,
  post,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { hiddenInput, note } from '../ui.ts'
import {
  blankWebhook,
  readWebhookForm,
  toWebhookInput,
  urlError,
  urlVerdict,
  validateWebhook,
  type WebhookInput,
  webhookFields,
} from './form.ts'
import { secretShownPage } from './secret.ts'
import { loadWebhook, webhookCrumbs } from './webhook.ts'

export const webhookEditRoutes: Route[] = [
  post('/webhooks', canManageWebhooks, createWebhook),
  get('/webhooks/new', canManageWebhooks, (visit) =>
    newWebhookPage(visit, {
      ...blankWebhook,
      eventTypes: visit.query.get('notices') === 'all' ? Object.keys(operationalTypes) : [],
    }),
  ),
  post('/webhooks/check-url', canManageWebhooks, checkUrl),
  get('/webhooks/:webhook/edit', canManageWebhooks, async (visit) =>
    editPage(await loadEndpoint(visit)),
  ),
  post('/webhooks/:webhook/edit', canManageWebhooks, saveWebhook),
]

function newWebhookPage(
  visit: Visit,
  input: WebhookInput,
  errors: Errors = {},
  problem?: string,
): ConsolePage {
  return formPage(
    { title: 'Create webhook', crumbs: [{ label: 'Webhooks', to: '/webhooks' }] },
    { to: '/webhooks', submit: 'Create webhook', cancel: '/webhooks', errors, problem },
    [hiddenInput(FORM_KEY, formKey(visit, problem)), webhookFields(input, errors)],
  )
}

const COPY_SECRET = note(
  'warn',
  'Copy the secret now. You won’t see it again. Your endpoint needs it to verify deliveries.',
)
const CREATED_BEFORE =
  'This webhook was already created. If you missed its signing secret, you can show it here.'

async function createWebhook(visit: Visit): Promise<PageResult> {
  const { config, user } = visit
  const input = readWebhookForm(visit.form)
  const { webhook, headers, errors } = validateWebhook(input, config)
  if (hasErrors(errors)) return newWebhookPage(visit, input, errors)
  try {
    const created = await createOnce(visit, async (scope) => {
      const fields = { ...webhook, createdBy: user.id }
      const added = await addWebhook({ ...visit, scope }, config.secretKeys, fields, headers)
      return { ...added, id: added.webhook.id }
    })
    const secrets = { current: created.secret }
    return secretShownPage(created.webhook, secrets, 'Webhook created', COPY_SECRET)
  } catch (error) {
    // For example, the account has too many webhooks.
    if (error instanceof Refused) return newWebhookPage(visit, input, {}, error.message)
    if (!(error instanceof AlreadyCreated)) throw error
    return error.hasDifferentInput
      ? newWebhookPage(visit, input, {}, RESENT_WITH_CHANGES)
      : redirect(`/webhooks/${error.id}/secret`, CREATED_BEFORE)
  }
}

async function checkUrl(visit: Visit): Promise<ConsolePage> {
  return { title: 'Create webhook', body: urlVerdict(await judgeUrl(visit)) }
}

async function judgeUrl({ config, user, form, throttles }: Visit): Promise<Content> {
  const url = form.get('url') ?? ''
  if (url.trim() === '') return false
  const tooOften = await throttles.consume('webhook_url', user.id)
  if (tooOften) return urlError(tooOften.message)
  const { errors } = validateWebhook({ ...blankWebhook, url }, config)
  if (errors.url) return urlError(errors.url.join(' '))
  return html`<p class="field-good">This URL is valid. We check it again before each attempt.</p>`
}

/** A Slack channel has a form of its own: see notifications.ts. */
async function loadEndpoint(visit: Visit): Promise<Webhook> {
  const webhook = await loadWebhook(visit)
  visit.ctx.assert(webhook.format === 'event', 404)
  return webhook
}

function editPage(
  webhook: Webhook,
  input: WebhookInput = toWebhookInput(webhook),
  errors: Errors = {},
): ConsolePage {
  const to = `/webhooks/${webhook.id}`
  const effect = html`<p class="muted">
    Scheduled attempts use the new URL and headers. Event types and the order of delivery apply to
    future events.
  </p>`
  return formPage(
    { title: `Edit ${webhookName(webhook)}`, crumbs: webhookCrumbs(webhook) },
    { to: `${to}/edit`, submit: 'Save', cancel: `${to}/settings`, errors },
    [webhookFields(input, errors), effect],
  )
}

async function saveWebhook(visit: Visit): Promise<PageResult> {
  const found = await loadEndpoint(visit)
  const input = readWebhookForm(visit.form)
  const { webhook, headers, errors } = validateWebhook(input, visit.config, found)
  if (hasErrors(errors)) return editPage(found, input, errors)
  const { secretKeys } = visit.config
  const changes = await visit.change(
    async (scope) =>
      (await changeWebhook({ ...visit, scope }, secretKeys, found.id, { ...webhook, headers })) ??
      visit.ctx.throw(404),
  )
  return redirect(`/webhooks/${found.id}/settings`, updateNotice(changes))
}

function updateNotice(changes: object): string {
  if (Object.keys(changes).length === 0) return 'No changes to save.'
  return 'url' in changes
    ? 'Webhook updated. The next attempt uses the new URL.'
    : 'Webhook updated.'
}
