/** The account itself, for its Owner. */
import { updateAccountName } from '../../../records/accounts.ts'
import { deleteInvitation } from '../../../records/invitations.ts'
import { assertName } from '../../../records/names.ts'
import { listJoinedIds, listUsers, transferOwnership, type User } from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import { ROLES } from '../layout.ts'
import { type Answer, get, isOwner, type Page, post, type Route, type Visit } from '../page.ts'
import {
  buttonLink,
  card,
  code,
  counted,
  type Errors,
  empty,
  facts,
  form,
  idOf,
  note,
  passwordField,
  problemsOf,
  selectField,
  textField,
} from '../ui.ts'
import { usernameOf, wrongPassword } from './own-password.ts'

export const settingsRoutes: Route[] = [
  get('/settings', isOwner, (visit) => settingsPage(visit)),
  post('/settings', isOwner, rename),
  get('/settings/transfer', isOwner, (visit) => transferPage(visit)),
  post('/settings/transfer', isOwner, transfer),
]

const targetOf = ({ account }: Visit) =>
  ({ type: 'account', id: account.id, name: account.name }) as const

function settingsPage(visit: Visit, errors: Errors = {}): Page {
  const { account, user, form: given } = visit
  return {
    title: 'Settings',
    lead: 'Of the account. What concerns you alone is on your own page.',
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: [
      card(
        'Account',
        form(
          { to: '/settings', submit: 'Save', errors },
          textField({
            name: 'name',
            label: 'Name of the account',
            value: given.get('name') ?? account.name,
            autocomplete: 'organization',
            maxLength: 200,
            isRequired: true,
            errors,
          }),
        ),
      ),
      card(
        'Ownership',
        html`<p>You, ${user.fullName}, are the Account Owner. There is one at all times, who sees and changes everything and decides what the others may.</p><p>${buttonLink('/settings/transfer', 'Transfer the ownership')}</p>`,
      ),
      card('How this service is set up', facts(configuredOf(visit))),
    ],
  }
}

/** What the operator of the service has set, and nobody changes here. */
function configuredOf({ config, account }: Visit): [string, ReturnType<typeof code> | string][] {
  const attempts = config.webhookRetryDelaysMs.length + 1
  return [
    ['Account id', idOf(account.id)],
    ['API address', code(`${config.baseUrl}/public/v1`)],
    [
      'Rate limit',
      `${counted(config.rateLimitPerMinute, 'request')} a minute for each person, over all their API keys`,
    ],
    [
      'Webhooks',
      `Up to ${counted(attempts, 'attempt')} for each delivery; an attempt is given up after ${config.webhookTimeoutMs / 1_000} s`,
    ],
    ['Events', `Kept for ${counted(config.eventRetentionDays, 'day')}, with their deliveries`],
    [
      'Attempts',
      `Kept for ${counted(config.attemptRetentionDays, 'day')} once their delivery has ended`,
    ],
    ['New accounts', config.signUp ? 'Anybody can create one' : 'Made by the operator alone'],
  ]
}

async function rename(visit: Visit): Promise<Answer> {
  const { account, now } = visit
  const name = visit.form.get('name') ?? ''
  const errors = problemsOf({ name: () => assertName('The name', name) })
  if (errors.name) return settingsPage(visit, errors)
  if (name.trim() === account.name)
    return { to: '/settings', notice: { kind: 'ok', text: 'Nothing was changed.' } }
  await visit.change(async (scope) => {
    await updateAccountName(scope, name, now)
    const changes = { name: { from: account.name, to: name.trim() } }
    await visit.audit(scope, {
      action: 'account.renamed',
      target: targetOf(visit),
      details: { changes },
    })
  })
  return {
    to: '/settings',
    notice: { kind: 'ok', text: `The account is called ${name.trim()} now.` },
  }
}

/** Those to whom the ownership can go. */
async function listHeirs({ scope, user }: Visit): Promise<User[]> {
  const [users, joined] = await Promise.all([listUsers(scope), listJoinedIds(scope)])
  return users.filter(
    ({ id, status }) => id !== user.id && status === 'active' && joined.includes(id),
  )
}

async function transferPage(visit: Visit, errors: Errors = {}): Promise<Page> {
  const heirs = await listHeirs(visit)
  return {
    title: 'Transfer the ownership',
    crumbs: [{ label: 'Settings', to: '/settings' }],
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: card(
      '',
      heirs.length === 0
        ? empty(
            'There is nobody to transfer it to',
            'The new Owner must be an active person of this account who has joined.',
            buttonLink('/people/invite', 'Invite somebody'),
          )
        : transferForm(visit, heirs, errors),
    ),
  }
}

function transferForm({ user, form: given }: Visit, heirs: User[], errors: Errors) {
  return form(
    {
      to: '/settings/transfer',
      submit: 'Transfer the ownership',
      style: 'danger',
      cancel: '/settings',
      errors,
    },
    [
      note(
        'warn',
        'At once you are an Admin, who manages API keys and webhooks, and no more sees people, settings or the audit log. Only the new Owner can give it back.',
      ),
      selectField({
        name: 'user',
        label: 'New Owner',
        none: 'Choose somebody',
        value: given.get('user') ?? '',
        choices: heirs.map(({ id, fullName, email, role }) => ({
          value: id,
          label: `${fullName}, ${email} (${ROLES[role]})`,
        })),
        isRequired: true,
        errors,
      }),
      usernameOf(user.email),
      passwordField({
        name: 'current_password',
        label: 'Your password',
        autocomplete: 'current-password',
        errors,
      }),
    ],
  )
}

async function transfer(visit: Visit): Promise<Answer> {
  const { user, now } = visit
  const heir = (await listHeirs(visit)).find(({ id }) => id === visit.form.get('user'))
  if (!heir) return transferPage(visit, { user: ['Choose who becomes the Owner.'] })
  const wrong = await wrongPassword(visit, visit.form.get('current_password') ?? '')
  if (wrong) return transferPage(visit, { current_password: [wrong] })
  await visit.change(async (scope) => {
    await transferOwnership(scope, user.id, heir.id, now)
    // Nobody takes it back by a link to a new password that was made before.
    await deleteInvitation(scope, heir.id)
    const changes = { owner: { from: user.fullName, to: heir.fullName } }
    await visit.audit(scope, {
      action: 'account.ownership_transferred',
      target: targetOf(visit),
      details: { changes },
    })
  })
  return {
    to: '',
    notice: {
      kind: 'ok',
      text: `${heir.fullName} is the Account Owner now, and you are an Admin.`,
    },
  }
}
