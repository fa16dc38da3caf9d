/** Who is told about failing webhooks, ended jobs and quotas: Slack channels, and webhooks that are
 *  subscribed to operational events. */
import { Refused } from '../../../errors.ts'
import { parseName } from '../../../records/names.ts'
import { isOperational } from '../../../records/subscriptions.ts'
import { listWebhooks, type Webhook, webhookName } from '../../../records/webhooks.ts'
import { parseWebhookUrl } from '../../../webhooks/transport/egress.ts'
import { addSlackChannel, changeWebhook } from '../../../webhooks/webhook-changes.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import {
  checkFields,
  choiceField,
  type Errors,
  form,
  formPage,
  formStatus,
  hasErrors,
  textField,
} from '../form-fields.ts'
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
import { buttonLink, card, hiddenInput, note, pill, table } from '../ui.ts'
import { noticeChoices } from './notice-choices.ts'
import { loadWebhook } from './webhook.ts'

const PATH = '/notifications'

export const notificationRoutes: Route[] = [
  get(PATH, canManageWebhooks, (visit) => notificationsPage(visit)),
  post(PATH, canManageWebhooks, addChannel),
  get(`${PATH}/:webhook`, canManageWebhooks, async (visit) =>
    recipientPage(await loadWebhook(visit)),
  ),
  post(`${PATH}/:webhook`, canManageWebhooks, saveRecipient),
]

const ALL = noticeChoices.map(({ value }) => value)

async function notificationsPage(
  visit: Visit,
  errors: Errors = {},
  problem?: string,
): Promise<ConsolePage> {
  const webhooks = await listWebhooks(visit.scope)
  const told = webhooks.filter(({ eventTypes }) => eventTypes.some(isOperational))
  return {
    title: 'Notifications',
    lead: 'Get told about failing webhooks, ended jobs and quotas.',
    status: problem === undefined ? formStatus(errors) : 422,
    isNarrow: true,
    body: [
      told.length === 0 ? nobody : card('Recipients', recipientsTable(told)),
      card('Add a Slack channel', channelForm(visit, errors, problem)),
      card('Your own program', [
        html`<p>
          A webhook can get the same notices as signed events. “All events” does not include them.
        </p>`,
        html`<p>${buttonLink('/webhooks/new?notices=all', 'Create webhook')}</p>`,
      ]),
      card(
        'How often',
        html`<p>
            Muster checks webhooks every minute and quotas every 10 minutes, and sends each change once.
            Notices about one webhook are at least 10 minutes apart. A quota is reported again after its
            use fell below 70 %.
          </p>
          <p>
            A Slack channel gets the first notice within a minute, then one message per hour with
            everything since. A webhook gets each notice as an event, but none about itself.
          </p>`,
      ),
    ],
  }
}

const nobody = note(
  'warn',
  'No recipients yet. Without a Slack channel or a webhook, you see an outage only in the console.',
)

function recipientsTable(webhooks: Webhook[]): Html {
  const rows = webhooks.map((webhook) => ({
    cells: [
      html`<a href="/console/webhooks/${webhook.id}"><bdi>${webhookName(webhook)}</bdi></a>`,
      webhook.format === 'slack' ? 'Slack' : 'Webhook',
      webhook.enabled ? noticesText(webhook) : pill('warn', 'Disabled'),
      html`<a href="/console${PATH}/${webhook.id}">
        Edit<span class="visually-hidden"> ${webhookName(webhook)}</span></a>`,
    ],
  }))
  return table('Recipients', ['Name', 'Kind', 'Notices', 'Edit'], rows)
}

function noticesText({ eventTypes }: Webhook): Content {
  const chosen = eventTypes.filter(isOperational)
  const names = noticeChoices
    .filter(({ value }) => chosen.includes(value))
    .map(({ label }) => label)
  return chosen.length === ALL.length
    ? 'All'
    : html`<span title="${names.join(', ')}">${chosen.length} of ${ALL.length}</span>`
}

function channelForm(visit: Visit, errors: Errors, problem?: string): Html {
  const input = visit.form
  const isSent = hasErrors(errors) || problem !== undefined
  return form({ to: PATH, submit: 'Add channel', errors, problem }, [
    hiddenInput(FORM_KEY, formKey(visit, problem)),
    textField({
      name: 'url',
      label: 'Incoming webhook URL',
      hint: 'From Slack, or a program that accepts the same messages, such as Mattermost. It is encrypted, and nobody can read it again.',
      type: 'url',
      value: input.get('url') ?? '',
      isRequired: true,
      maxLength: 2048,
      placeholder: 'https://hooks.slack.com/services/…',
      errors,
    }),
    textField({
      name: 'description',
      label: 'Name',
      hint: 'For example “Slack #operations”.',
      value: input.get('description') ?? '',
      isRequired: true,
      maxLength: 200,
      errors,
    }),
    noticesField(isSent ? input.getAll('event_types') : ALL, errors),
  ])
}

function noticesField(values: string[], errors: Errors): Html {
  const options = {
    name: 'event_types',
    legend: 'Notices',
    choices: noticeChoices,
    isMultiple: true,
  }
  return choiceField({ ...options, values, errors })
}

function assertNotices(types: string[]): void {
  if (types.length === 0) throw new Refused('Choose at least one notice')
  if (!types.every(isOperational)) throw new Refused('Choose notices from the list')
}

async function addChannel(visit: Visit): Promise<PageResult> {
  const { config, user, form } = visit
  const description = (form.get('description') ?? '').trim()
  const eventTypes = [...new Set(form.getAll('event_types'))]
  let url = ''
  const errors = checkFields({
    url() {
      url = parseWebhookUrl((form.get('url') ?? '').trim(), config.webhookAllowedRanges)
    },
    description: () => parseName('The name', description),
    event_types: () => assertNotices(eventTypes),
  })
  if (hasErrors(errors)) return notificationsPage(visit, errors)
  try {
    const fields = { url, description, eventTypes, createdBy: user.id }
    const { id } = await createOnce(visit, (scope) =>
      addSlackChannel({ ...visit, scope }, config.secretKeys, fields),
    )
    return redirect(`/webhooks/${id}/settings`, 'Channel added. Send a test message to try it.')
  } catch (error) {
    // For example, the account has too many webhooks.
    if (error instanceof Refused) return notificationsPage(visit, {}, error.message)
    if (!(error instanceof AlreadyCreated)) throw error
    return error.hasDifferentInput
      ? notificationsPage(visit, {}, RESENT_WITH_CHANGES)
      : redirect(PATH, 'This channel was already added.')
  }
}

function recipientPage(
  webhook: Webhook,
  notices = webhook.eventTypes.filter(isOperational),
  errors: Errors = {},
): ConsolePage {
  const lead =
    webhook.format === 'slack' ? 'To use another URL, add another channel and delete this one.' : ''
  return formPage(
    {
      title: `Notices for ${webhookName(webhook)}`,
      lead,
      crumbs: [{ label: 'Notifications', to: PATH }],
    },
    { to: `${PATH}/${webhook.id}`, submit: 'Save', cancel: PATH, errors },
    noticesField(notices, errors),
  )
}

/** A webhook that gets other events, too, keeps them, and may get no notice. */
async function saveRecipient(visit: Visit): Promise<PageResult> {
  const webhook = await loadWebhook(visit)
  const notices = visit.form.getAll('event_types')
  const others = webhook.eventTypes.filter((type) => !isOperational(type))
  const errors = checkFields({
    event_types: () => (notices.length === 0 && others.length > 0) || assertNotices(notices),
  })
  if (hasErrors(errors)) return recipientPage(webhook, notices, errors)
  const eventTypes = [...new Set([...others, ...notices])]
  const { secretKeys } = visit.config
  await visit.change(
    async (scope) =>
      (await changeWebhook({ ...visit, scope }, secretKeys, webhook.id, { eventTypes })) ??
      visit.ctx.throw(404),
  )
  return redirect(PATH, 'Notices updated.')
}
