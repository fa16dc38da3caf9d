/** Account settings. Only the Account Owner sees them. */
import { updateAccountName } from '../../../records/accounts.ts'
import { FILE_DAYS } from '../../../records/file-jobs.ts'
import { deleteInvitations } from '../../../records/invitations.ts'
import { parseName } from '../../../records/names.ts'
import { listJoinedIds } from '../../../records/passwords.ts'
import { countUse, findQuotas, type Quotas, type QuotaUse } from '../../../records/quotas.ts'
import { listUsers, transferOwnership, type User } from '../../../records/users.ts'
import { type Html, html } from '../../shared/html.ts'
import { limitMeter } from '../charts.ts'
import {
  checkFields,
  type Errors,
  form,
  formStatus,
  passwordField,
  selectField,
  textField,
  typedFields,
} from '../form-fields.ts'
import { count, counted } from '../format.ts'
import { ROLES } from '../layout.ts'
import {
  type ConsolePage,
  get,
  isOwner,
  type PageResult,
  post,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { card, code, copyableId, type Fact, facts } from '../ui.ts'
import { checkOwnPassword, usernameField } from './user-fields.ts'

export const settingsRoutes: Route[] = [
  get('/settings', isOwner, (visit) => settingsPage(visit)),
  post('/settings', isOwner, rename),
  post('/settings/transfer', isOwner, transfer),
]

const accountTarget = ({ account }: Visit) =>
  ({ type: 'account', id: account.id, name: account.name }) as const

async function settingsPage(visit: Visit, errors: Errors = {}): Promise<ConsolePage> {
  const { account, form: input, scope, config, now } = visit
  const [quotas, use, candidates] = await Promise.all([
    findQuotas(scope, config.quotas),
    countUse(scope, now),
    listCandidates(visit),
  ])
  const { name, ...transferErrors } = errors
  const nameErrors: Errors = name ? { name } : {}
  return {
    title: 'Settings',
    lead: 'Settings of the whole account. Your own settings are in your profile.',
    status: formStatus(errors),
    isNarrow: true,
    body: [
      card(
        'Account',
        form(
          { to: '/settings', submit: 'Save', errors: nameErrors },
          textField({
            ...typedFields(input, nameErrors)('name', 'Account name', account.name),
            autocomplete: 'organization',
            maxLength: 200,
          }),
        ),
      ),
      quotasCard(quotas, use),
      card('Limits and retention', facts(serviceFacts(visit, quotas))),
      html`<div id="transfer">
        ${card('Transfer ownership', transferForm(visit, candidates, transferErrors))}
      </div>`,
    ],
  }
}

const QUOTAS: Record<keyof QuotaUse, string> = {
  records: 'Records',
  events_per_day: 'Events today (UTC)',
  webhooks: 'Webhooks',
  users: 'Users',
  keys_per_user: 'API keys (most of any user)',
  export_mib: 'Files of exports and imports',
  unfinished_exports: 'Unfinished exports',
  unfinished_imports: 'Unfinished imports',
}

/** The quotas, which the operator of the service sets, and how much of them is used. */
function quotasCard(quotas: Quotas, use: QuotaUse): Html {
  const names = Object.keys(QUOTAS) as (keyof QuotaUse)[]
  const rows = names.map((name): Fact => [QUOTAS[name], quotaUse(name, use[name], quotas[name])])
  const text = 'Changes beyond a quota are refused. Ask the operator of this service for more.'
  return card('Quotas', [facts(rows), html`<p class="muted">${text}</p>`])
}

function quotaUse(name: keyof QuotaUse, use: number, limit: number): Html {
  const share = limit === 0 ? 1 : use / limit
  const unit = name === 'export_mib' && ' MiB'
  return html`${count(use)}${unit} <span class="muted">of ${count(limit)}${unit}</span>
    ${limitMeter(share, share >= 1)}`
}

/** The ID of the account, and the limits of the service. */
function serviceFacts({ config, account }: Visit, { requests_per_minute }: Quotas): Fact[] {
  const { retentionDays } = config
  const attempts = counted(config.webhookRetryDelaysMs.length + 1, 'attempt')
  const fileDays = counted(FILE_DAYS, 'day')
  const timeoutSeconds = config.webhookTimeoutMs / 1_000
  return [
    ['Account ID', copyableId(account.id)],
    ['API URL', code(`${config.baseUrl}/public/v1`)],
    [
      'Rate limit',
      `${counted(requests_per_minute, 'request')} per minute and user, over all their API keys`,
    ],
    ['Webhooks', `Up to ${attempts} per delivery; attempts time out after ${timeoutSeconds} s`],
    ['Events', `Kept for ${counted(retentionDays.events, 'day')}, with their deliveries`],
    ['Attempts', `Kept for ${counted(retentionDays.attempts, 'day')} after their delivery ended`],
    ['API requests', `Kept for ${counted(retentionDays.requestLog, 'day')}`],
    [
      'Exports and imports',
      `Kept for ${counted(retentionDays.exports, 'day')}; files for ${fileDays}`,
    ],
    [
      'Audit log',
      [
        `Kept for ${counted(retentionDays.auditLog, 'day')}; `,
        `entries about records for ${counted(retentionDays.events, 'day')}`,
      ].join(''),
    ],
    ['New accounts', config.isSignUpOpen ? 'Sign-up is open' : 'Created by the operator only'],
  ]
}

async function rename(visit: Visit): Promise<PageResult> {
  const { account, now } = visit
  const name = visit.form.get('name') ?? ''
  const errors = checkFields({ name: () => parseName('The name', name) })
  if (errors.name) return settingsPage(visit, errors)
  if (name.trim() === account.name) return redirect('/settings', 'No changes to save.')
  await visit.change(async (scope) => {
    await updateAccountName(scope, name, now)
    const changes = { name: { from: account.name, to: name.trim() } }
    await visit.audit(scope, 'account.renamed', accountTarget(visit), { changes })
  })
  return redirect('/settings', `Account renamed to ${name.trim()}.`)
}

/** The users who can become the Account Owner: active users who have joined. */
async function listCandidates({ scope, user }: Visit): Promise<User[]> {
  const [users, joined] = await Promise.all([listUsers(scope), listJoinedIds(scope)])
  return users.filter(
    ({ id, status }) => id !== user.id && status === 'active' && joined.includes(id),
  )
}

function transferForm({ user, form: input }: Visit, candidates: User[], errors: Errors): Html {
  if (candidates.length === 0) return noCandidates
  const submit = 'Transfer ownership'
  // The browser scrolls to the errors: the form is the last of the page.
  return form({ to: '/settings/transfer#transfer', submit, style: 'danger', errors }, [
    html`<p>
      You become an Admin right away and lose access to People, Settings and the audit log. Only the
      new owner can undo this. Open invitations and password links stop working.
    </p>`,
    selectField({
      ...typedFields(input, errors)('user', 'New owner'),
      none: 'Choose a user',
      choices: candidates.map(({ id, fullName, email, role }) => ({
        value: id,
        label: `${fullName}, ${email} (${ROLES[role]})`,
      })),
    }),
    usernameField(user.email),
    passwordField({
      name: 'current_password',
      label: 'Your password',
      autocomplete: 'current-password',
      errors,
    }),
  ])
}

const noCandidates = html`<p>
  The new owner must be an active user of this account who has joined. There is no other one.
</p>`

async function transfer(visit: Visit): Promise<PageResult> {
  const { user, now } = visit
  const newOwner = (await listCandidates(visit)).find(({ id }) => id === visit.form.get('user'))
  if (!newOwner) return settingsPage(visit, { user: ['Choose the new owner.'] })
  const passwordErrors = await checkOwnPassword(visit, 'current_password')
  if (passwordErrors) return settingsPage(visit, passwordErrors)
  await visit.change(async (scope) => {
    await transferOwnership(scope, user.id, newOwner.id, now)
    // The former owner may have copied one-time links of users, and could sign in as these users.
    await deleteInvitations(scope)
    const changes = { owner: { from: user.fullName, to: newOwner.fullName } }
    await visit.audit(scope, 'account.ownership_transferred', accountTarget(visit), { changes })
  })
  return redirect('', `${newOwner.fullName} is now the Account Owner. You are an Admin.`)
}
