/** The signing secret of a webhook: show it again, and rotate it without downtime. */
import { Refused } from '../../../errors.ts'
import { findSealedSecrets, type SealedSecrets } from '../../../records/webhook-secrets.ts'
import { type Webhook, webhookTarget } from '../../../records/webhooks.ts'
import { openSecret, SecretUnreadable } from '../../../webhooks/transport/secret.ts'
import { activateNextSecret, prepareNextSecret } from '../../../webhooks/webhook-changes.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { checkOwnPassword, usernameField } from '../account/user-fields.ts'
import { type Errors, form, formStatus, passwordField } from '../form-fields.ts'
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
import { actionForm, buttonLink, card, codeBlock, confirmButton, note } from '../ui.ts'
import { loadWebhook, webhookCrumbs } from './webhook.ts'

export const webhookSecretRoutes: Route[] = [
  get('/webhooks/:webhook/secret', canManageWebhooks, async (visit) =>
    secretPage(visit, await loadWebhook(visit)),
  ),
  post('/webhooks/:webhook/secret', canManageWebhooks, revealSecret),
  post('/webhooks/:webhook/secret/prepare', canManageWebhooks, prepareSecret),
  post('/webhooks/:webhook/secret/activate', canManageWebhooks, activateSecret),
]

function secretPage({ user }: Visit, webhook: Webhook, errors: Errors = {}): ConsolePage {
  return {
    title: 'Signing secret',
    lead: 'Use it to verify that deliveries come from Muster and were not altered.',
    crumbs: webhookCrumbs(webhook),
    status: formStatus(errors),
    isNarrow: true,
    body: [
      card('Show the secret', revealForm(webhook, user.email, errors)),
      card('Rotate without downtime', rotationSteps(webhook)),
    ],
  }
}

function revealForm({ id }: Webhook, email: string, errors: Errors): Html {
  return form({ to: `/webhooks/${id}/secret`, submit: 'Show the secret', style: '', errors }, [
    usernameField(email),
    passwordField({
      name: 'password',
      label: 'Your password',
      hint: 'Anyone with the secret can forge deliveries. The audit log records that you saw it.',
      autocomplete: 'current-password',
      errors,
    }),
  ])
}

function rotationSteps({ id, hasNextSecret }: Webhook): Html {
  const current = html` aria-current="step"`
  return html`<ol class="steps">
    <li${!hasNextSecret && current}>
      <h3>Prepare</h3>
      <p>Creates the next secret and shows it once. The current secret stays active.</p>
      ${actionForm({
        to: `/webhooks/${id}/secret/prepare`,
        label: hasNextSecret ? 'Prepare another secret' : 'Prepare new secret',
        style: hasNextSecret ? '' : 'primary',
      })}
    </li>
    <li>
      <h3>Add it to your endpoint</h3>
      <p>Accept deliveries that are signed with either the current or the next secret.</p>
    </li>
    <li${hasNextSecret && current}>
      <h3>Activate</h3>
      <p>The next secret signs every attempt from then on. The current one is deleted.</p>
      ${hasNextSecret && activateButton(id)}
    </li>
  </ol>`
}

function activateButton(webhookId: string): Html {
  return confirmButton('Activate', {
    title: 'Activate the next secret?',
    text: 'From now on, only this secret signs. An endpoint without it will reject deliveries.',
    openStyle: 'primary',
    body: actionForm({
      to: `/webhooks/${webhookId}/secret/activate`,
      label: 'Activate',
      style: 'primary',
    }),
  })
}

interface Secrets {
  current?: string
  next?: string
}

/** The only page that contains signing secrets. */
export function secretShownPage(
  webhook: Webhook,
  { current, next }: Secrets,
  title: string,
  text: Content,
): ConsolePage {
  const hasBoth = current !== undefined && next !== undefined
  const heading = (words: string): Content => hasBoth && html`<h3 class="card-body">${words}</h3>`
  const cardTitle = next === undefined ? 'Signing secret' : 'Next secret'
  const doneTo = `/webhooks/${webhook.id}${next === undefined ? '' : '/secret'}`
  return {
    title,
    crumbs: webhookCrumbs(webhook),
    isNarrow: true,
    body: card(hasBoth ? 'Signing secrets' : cardTitle, [
      text,
      current !== undefined && [heading('Current'), codeBlock(current, 'signing secret')],
      next !== undefined && [
        heading('Next, not active yet'),
        codeBlock(next, 'next signing secret'),
      ],
      html`<p>
        ${buttonLink(doneTo, 'Done', 'primary')}
        <a class="aside-link" href="/docs/guides/webhooks">How to verify a signature</a>
      </p>`,
    ]),
  }
}

async function revealSecret(visit: Visit): Promise<PageResult> {
  const webhook = await loadWebhook(visit)
  const passwordErrors = await checkOwnPassword(visit, 'password')
  if (passwordErrors) return secretPage(visit, webhook, passwordErrors)
  const sealed = await visit.change(async (scope) => {
    const found = await findSealedSecrets(scope, webhook.id)
    if (found) await visit.audit(scope, 'webhook.secret_revealed', webhookTarget(webhook))
    return found
  })
  if (!sealed) return visit.ctx.throw(404)
  return secretShownPage(
    webhook,
    openSecrets(visit, webhook.id, sealed),
    'Signing secret',
    note('warn', 'Store it like a password, then close this page.'),
  )
}

function openSecrets({ config }: Visit, id: string, { current, next }: SealedSecrets): Secrets {
  try {
    const open = (sealed: string): string => openSecret(config.secretKeys, id, sealed)
    return { current: open(current), next: next === null ? undefined : open(next) }
  } catch (error) {
    if (!(error instanceof SecretUnreadable)) throw error
    throw new Refused(
      'The signing secret cannot be read: its key is lost. Prepare a new one and activate it.',
      { cause: error },
    )
  }
}

async function prepareSecret(visit: Visit): Promise<PageResult> {
  const webhook = await loadWebhook(visit)
  const { secretKeys } = visit.config
  const next = await visit.change(
    async (scope) =>
      (await prepareNextSecret({ ...visit, scope }, secretKeys, webhook.id)) ??
      visit.ctx.throw(404),
  )
  return secretShownPage(
    webhook,
    { next },
    'Next secret created',
    note(
      'warn',
      'Copy it now. You won’t see it again. ' +
        'The current secret stays active until you activate this one.',
    ),
  )
}

async function activateSecret(visit: Visit): Promise<PageResult> {
  const webhook = await loadWebhook(visit)
  await visit.change(
    async (scope) =>
      (await activateNextSecret({ ...visit, scope }, webhook.id)) ?? visit.ctx.throw(404),
  )
  return redirect(
    `/webhooks/${webhook.id}/secret`,
    'New secret activated. It signs every attempt from now on.',
  )
}
