/** The card “Getting started” of the overview: create a key, make a request, create a webhook. */
import { listAccountKeys } from '../../records/api-keys.ts'
import { hasRequests } from '../../records/reports/traffic.ts'
import { apiCurlCommand } from '../shared/curl.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { counted } from './format.ts'
import { canManageKeys, canManageWebhooks, type Visit } from './page.ts'
import { card, codeBlock } from './ui.ts'

interface Step {
  title: string
  isDone: boolean
  text: Content
}

export async function firstSteps(
  { scope, user, config }: Visit,
  hasWebhook: boolean,
): Promise<Step[]> {
  const [activeKeys, revokedKeys, hasCalled] = await Promise.all([
    listAccountKeys(scope, { isRevoked: false, limit: 1 }),
    listAccountKeys(scope, { isRevoked: true, limit: 1 }),
    hasRequests(scope),
  ])
  const askOwner = 'Ask the Account Owner for permission.'
  const command = apiCurlCommand({ method: 'GET', url: `${config.baseUrl}/public/v1/participants` })
  const keyLink = html`<a href="/console/api-keys/new">Create API key</a>`
  const webhookLink = html`<a href="/console/webhooks/new">Create webhook</a>`
  return [
    {
      title: 'Create an API key',
      isDone: activeKeys.length + revokedKeys.length > 0,
      text: html`<p>
        Every request needs a key. It is shown once: store it like a password.
        ${canManageKeys(user) ? keyLink : askOwner}
      </p>`,
    },
    {
      title: 'Make your first request',
      isDone: hasCalled,
      text: html`
        <p>
          Set MUSTER_API_KEY to your key, then run this command. The request and its response appear
          under <a href="/console/requests">API requests</a>.
        </p>
        ${codeBlock(command, 'first request')}`,
    },
    {
      title: 'Create a webhook',
      isDone: hasWebhook,
      text: html`<p>
        A webhook sends each event to your endpoint within a second.
        ${canManageWebhooks(user) ? webhookLink : askOwner}
      </p>`,
    },
  ]
}

export function gettingStarted(steps: Step[]): Html {
  const stepsLeft = steps.filter(({ isDone }) => !isDone).length
  return card('Getting started', [
    html`<ol class="first-steps">${steps.map(stepItem)}</ol>`,
    html`<p class="muted">
      ${counted(stepsLeft, 'step')} left. The <a href="/docs/">documentation</a> has a
      <a href="/docs/guides/getting-started">getting started guide</a>, every operation, and code to
      copy.
    </p>`,
  ])
}

function stepItem({ title, isDone, text }: Step): Html {
  return html`<li${isDone && html` class="done"`}>
    <h3>${title}${isDone && html` <span class="visually-hidden">(done)</span>`}</h3>
    ${!isDone && text}
  </li>`
}
