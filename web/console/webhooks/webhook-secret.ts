/** The signing secret of a webhook: shown once when it is made, again for a password, and changed without a gap. */
import { Refused } from '../../../errors.ts'
import {
  activateSecret,
  findSealedSecrets,
  prepareSecret,
  type SealedSecrets,
  type Webhook,
} from '../../../records/webhooks.ts'
import {
  newSecret,
  openSecret,
  SecretUnreadable,
  sealSecret,
} from '../../../webhooks/transport/secret.ts'
import { type Content, html } from '../../shared/html.ts'
import { usernameOf, wrongPassword } from '../account/own-password.ts'
import { type Answer, get, type Page, post, type Route, type Visit } from '../page.ts'
import {
  action,
  buttonLink,
  card,
  codeBlock,
  confirmed,
  type Errors,
  form,
  note,
  passwordField,
} from '../ui.ts'
import { crumbsOf, mayManage, targetOf, webhookOf } from './webhook-access.ts'

export const webhookSecretRoutes: Route[] = [
  get('/webhooks/:webhook/secret', mayManage, async (visit) =>
    secretPage(visit, await webhookOf(visit)),
  ),
  post('/webhooks/:webhook/secret', mayManage, revealSecret),
  post('/webhooks/:webhook/secret/prepare', mayManage, prepareNext),
  post('/webhooks/:webhook/secret/activate', mayManage, activateNext),
]

function secretPage({ user }: Visit, webhook: Webhook, errors: Errors = {}): Page {
  const { id, hasNextSecret } = webhook
  return {
    title: 'Signing secret',
    lead: 'With it your receiver can tell that a delivery comes from here and was not changed on its way.',
    crumbs: crumbsOf(webhook),
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: [
      card(
        'Show it again',
        form({ to: `/webhooks/${id}/secret`, submit: 'Show the secret', style: '', errors }, [
          usernameOf(user.email),
          passwordField({
            name: 'password',
            label: 'Your password',
            hint: 'Whoever has the secret can forge deliveries. That it was shown is noted in the audit log.',
            autocomplete: 'current-password',
            errors,
          }),
        ]),
      ),
      card(
        'Change it without a gap',
        html`<ol class="steps"><li${!hasNextSecret && html` aria-current="step"`}><h3>Prepare</h3><p>Makes the next secret and shows it once. The present one goes on signing.</p>${action(
          {
            to: `/webhooks/${id}/secret/prepare`,
            label: hasNextSecret ? 'Prepare another one instead' : 'Prepare new secret',
            style: hasNextSecret ? '' : 'primary',
          },
        )}</li><li><h3>Teach it to your receiver</h3><p>Let it accept deliveries that are signed with the present secret or with the next one.</p></li><li${hasNextSecret && html` aria-current="step"`}><h3>Activate</h3><p>From the next attempt on, the next secret signs, and the present one is forgotten.</p>${
          hasNextSecret &&
          confirmed('Activate', {
            title: 'Activate the next secret?',
            text: 'Every attempt from now on is signed with it alone. A receiver that does not know it will refuse them.',
            style: '',
            body: action({
              to: `/webhooks/${id}/secret/activate`,
              label: 'Activate',
              style: 'primary',
            }),
          })
        }</li></ol>`,
      ),
    ],
  }
}

/** The secret is in this page and nowhere else. */
export function secretShownPage(
  webhook: Webhook,
  secrets: { current?: string; next?: string },
  title: string,
  text: Content,
): Page {
  const { current, next } = secrets
  return {
    title,
    crumbs: crumbsOf(webhook),
    isNarrow: true,
    body: card(
      current !== undefined && next !== undefined
        ? 'The secrets'
        : next === undefined
          ? 'The signing secret'
          : 'The next secret',
      [
        text,
        current !== undefined && next !== undefined && html`<h3 class="card-body">Signs now</h3>`,
        current !== undefined && codeBlock(current, 'signing secret'),
        current !== undefined &&
          next !== undefined &&
          html`<h3 class="card-body">Signs once it is activated</h3>`,
        next !== undefined && codeBlock(next, 'next signing secret'),
        html`<p>${buttonLink(`/webhooks/${webhook.id}${next === undefined ? '' : '/secret'}`, 'Done', 'primary')} <a class="aside-link" href="/docs/guides/webhooks">How to verify a signature</a></p>`,
      ],
    ),
  }
}

async function revealSecret(visit: Visit): Promise<Answer> {
  const webhook = await webhookOf(visit)
  const problem = await wrongPassword(visit, visit.form.get('password') ?? '')
  if (problem !== undefined) return secretPage(visit, webhook, { password: [problem] })
  const sealed = await visit.change(async (scope) => {
    const found = await findSealedSecrets(scope, webhook.id)
    if (found)
      await visit.audit(scope, { action: 'webhook.secret_revealed', target: targetOf(webhook) })
    return found
  })
  if (!sealed) return visit.ctx.throw(404)
  return secretShownPage(
    webhook,
    opened(visit, webhook.id, sealed),
    'Signing secret',
    note('warn', 'Keep it where you keep passwords, and close this page.'),
  )
}

function opened(
  { config }: Visit,
  id: string,
  { current, next }: SealedSecrets,
): { current: string; next?: string } {
  try {
    const open = (sealed: string): string => openSecret(config.secretKey, id, sealed)
    return { current: open(current), next: next === null ? undefined : open(next) }
  } catch (error) {
    if (!(error instanceof SecretUnreadable)) throw error
    throw new Refused(
      'The secret cannot be read: SECRET_KEY has changed since it was made. Prepare another one, and activate it.',
      {
        cause: error,
      },
    )
  }
}

async function prepareNext(visit: Visit): Promise<Answer> {
  const webhook = await webhookOf(visit)
  const next = newSecret()
  await visit.change(async (scope) => {
    const sealed = sealSecret(visit.config.secretKey, webhook.id, next)
    if (!(await prepareSecret(scope, webhook.id, sealed, visit.now))) visit.ctx.throw(404)
    await visit.audit(scope, { action: 'webhook.secret_prepared', target: targetOf(webhook) })
  })
  return secretShownPage(
    webhook,
    { next },
    'The next secret is ready',
    note(
      'warn',
      'Copy it now: it is shown this once. The present secret signs until you activate this one.',
    ),
  )
}

async function activateNext(visit: Visit): Promise<Answer> {
  const webhook = await webhookOf(visit)
  await visit.change(async (scope) => {
    if (!(await activateSecret(scope, webhook.id, visit.now))) visit.ctx.throw(404)
    await visit.audit(scope, { action: 'webhook.secret_activated', target: targetOf(webhook) })
  })
  return {
    to: `/webhooks/${webhook.id}/secret`,
    notice: { kind: 'ok', text: 'The new secret signs, from the next attempt on.' },
  }
}
