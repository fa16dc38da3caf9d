/** The form of a new API key, and the page that shows its token once. */
import { issueApiKey } from '../../../auth/api-key.ts'
import type { WriteScope } from '../../../records/database/scope.ts'
import { canManageWebhooks, findRateLimit, type Permission } from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import { type Errors, formPage, hasErrors } from '../form-fields.ts'
import { count } from '../format.ts'
import {
  AlreadyCreated,
  createOnce,
  FORM_KEY,
  formKey,
  RESENT_WITH_CHANGES,
} from '../idempotent-form.ts'
import { type ConsolePage, type PageResult, redirect, type Visit } from '../page.ts'
import { buttonLink, card, codeBlock, hiddenInput, note } from '../ui.ts'
import { ACCESS_LEVELS, CRUMBS, type KeyInput, keyFields, readKeyForm } from './api-key-parts.ts'

const FINANCE_ACCESS: Record<Permission, string> = {
  none: 'It cannot access payments because you have no Finance access.',
  read: 'It can only read payments because your Finance access is View.',
  write: 'It can access payments because you have Finance access.',
}

export async function newKeyPage(
  visit: Visit,
  errors: Errors = {},
  problem?: string,
): Promise<ConsolePage> {
  const { form: input, user, config, scope } = visit
  const limit = count(await findRateLimit(scope, user, config.quotas))
  const values = {
    name: input.get('name') ?? '',
    accessLevel: input.get('access_level') ?? 'read_only',
  }
  return formPage(
    { title: 'Create API key', crumbs: CRUMBS },
    { to: '/api-keys', submit: 'Create API key', cancel: '/api-keys', errors, problem },
    [
      hiddenInput(FORM_KEY, formKey(visit, problem)),
      keyFields(values, errors),
      html`<p class="muted">
        The key shares your limit of ${limit} requests per minute. It stops working when you are
        deactivated. ${FINANCE_ACCESS[user.permissions.finance]}
        ${canManageWebhooks(user) && 'It can manage webhooks because you can.'}
      </p>`,
    ],
  )
}

export async function createKey(visit: Visit): Promise<PageResult> {
  const { key, errors } = readKeyForm(visit)
  if (hasErrors(errors)) return newKeyPage(visit, errors)
  try {
    const { token } = await createOnce(visit, (scope) => issueKey(visit, scope, key))
    return createdPage(visit, key, token)
  } catch (error) {
    if (!(error instanceof AlreadyCreated)) throw error
    return error.hasDifferentInput
      ? newKeyPage(visit, {}, RESENT_WITH_CHANGES)
      : redirect(`/api-keys/${error.id}`, CREATED_BEFORE)
  }
}

const CREATED_BEFORE =
  'This key was already created and cannot be shown again. ' +
  'If you missed it, revoke it and create another one.'

async function issueKey(visit: Visit, scope: WriteScope, { name, accessLevel }: KeyInput) {
  const issued = await issueApiKey(scope, { name, accessLevel, userId: visit.user.id }, visit.now)
  const target = { type: 'api_key', id: issued.id, name: name.trim() } as const
  await visit.audit(scope, 'api_key.created', target, { access_level: accessLevel })
  return issued
}

/** The only page that shows the token. */
function createdPage({ config }: Visit, key: KeyInput, token: string): ConsolePage {
  const curl = `curl -H 'Authorization: Bearer ${token}' ${config.baseUrl}/public/v1/participants`
  return {
    title: `The key “${key.name.trim()}” is ready`,
    lead: ACCESS_LEVELS[key.accessLevel],
    crumbs: CRUMBS,
    isNarrow: true,
    body: card('Your new key', [
      note('warn', 'Copy it now. You won’t see it again.'),
      codeBlock(token, 'key'),
      html`<h3 class="card-body">Try it</h3>`,
      codeBlock(curl, 'command'),
      html`<p>
        ${buttonLink('/api-keys', 'Done', 'primary')}
        <a href="/docs/" class="aside-link">Read the documentation</a>
      </p>`,
    ]),
  }
}
