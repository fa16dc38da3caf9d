/** The profile of the signed-in user: name, email, password, sessions, theme. */
import { assertPassword, hashPassword } from '../../../auth/password.ts'
import { TooOften } from '../../../auth/rate-limit.ts'
import { describeDevice } from '../../../auth/session.ts'
import { deleteInvitation } from '../../../records/invitations.ts'
import { assertName } from '../../../records/names.ts'
import { updatePassword } from '../../../records/passwords.ts'
import {
  deleteSession,
  deleteSessions,
  listSessions,
  type Session,
} from '../../../records/sessions.ts'
import {
  assertEmail,
  EmailTaken,
  modules,
  updateEmail,
  updateFullName,
} from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import {
  type Errors,
  form,
  passwordField,
  problemsOf,
  selectField,
  textField,
} from '../form-fields.ts'
import { counted } from '../format.ts'
import { ROLES, themes } from '../layout.ts'
import {
  anyUser,
  type ConsolePage,
  get,
  type PageResult,
  post,
  type Route,
  type Visit,
} from '../page.ts'
import { formatGrants, MODULE_LABELS, PERMISSION_LABELS } from '../people/access-form.ts'
import { action, buttonLink, card, confirmed, facts, pill, table, timeElement } from '../ui.ts'
import { checkOwnPassword, PASSWORD_HINT, usernameField } from './own-password.ts'

export const meRoutes: Route[] = [
  get('/me', anyUser, (visit) => mePage(visit)),
  post('/me', anyUser, rename),
  get('/me/email', anyUser, (visit) => emailPage(visit)),
  post('/me/email', anyUser, changeEmail),
  get('/me/password', anyUser, (visit) => passwordPage(visit)),
  post('/me/password', anyUser, changePassword),
  post('/me/sessions/end-others', anyUser, endOthers),
  post('/me/sessions/:session/end', anyUser, endSession),
]

const CRUMBS = [{ label: 'Your profile', to: '/me' }]
const ownTarget = ({ user }: Visit) => ({ type: 'user', id: user.id, name: user.fullName }) as const

async function mePage(visit: Visit, errors: Errors = {}): Promise<ConsolePage> {
  const { user, form: input, ctx } = visit
  const theme = themes.find((name) => name === ctx.cookies.get('muster-theme')) ?? 'system'
  return {
    title: 'Your profile',
    lead: 'Your name, sign-in details and sessions.',
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: [
      card(
        'Name',
        form(
          { to: '/me', submit: 'Save', errors },
          textField({
            name: 'full_name',
            label: 'Full name',
            hint: 'Visible to everyone in your account.',
            value: input.get('full_name') ?? user.fullName,
            autocomplete: 'name',
            maxLength: 200,
            isRequired: true,
            errors,
          }),
        ),
      ),
      card(
        'Sign-in',
        facts([
          ['Email', factWith(user.email, '/me/email', 'Change email')],
          ['Password', factWith('••••••••', '/me/password', 'Change password')],
        ]),
      ),
      await sessionsCard(visit),
      card(
        'Theme',
        form(
          { to: '/theme', submit: 'Apply', style: '' },
          selectField({
            name: 'theme',
            label: 'Theme of this browser',
            value: theme,
            isRequired: true,
            choices: [
              { value: 'system', label: 'System' },
              { value: 'light', label: 'Light' },
              { value: 'dark', label: 'Dark' },
            ],
          }),
        ),
      ),
      card('Your access', facts(accessFacts(visit))),
    ],
  }
}

function factWith(fact: string, to: string, label: string): Html {
  return html`<span class="fact-with"><span>${fact}</span>${buttonLink(to, label)}</span>`
}

function accessFacts({ user }: Visit): [string, Content][] {
  return [
    ['Role', ROLES[user.role]],
    ...(user.role === 'member'
      ? []
      : [['Manages', formatGrants(user) || '—'] as [string, Content]]),
    ...modules.map((module): [string, Content] => [
      MODULE_LABELS[module],
      PERMISSION_LABELS[user.permissions[module]],
    ]),
  ]
}

async function sessionsCard(visit: Visit): Promise<Html> {
  const { scope, user, now, session: current } = visit
  const sessions = await listSessions(scope, user.id, now)
  const others = sessions.length - 1
  return card(
    'Sessions',
    table(
      ['Device', 'Last seen', 'Signed in', { label: 'Actions', isHidden: true }],
      sessions.map((session) => ({ cells: sessionCells(session, session.id === current.id, now) })),
      { label: 'Sessions' },
    ),
    {
      actions:
        others > 0 &&
        confirmed('Sign out all others', {
          title: 'Sign out all other devices?',
          text: `This ends ${counted(others, 'other session')} now. You stay signed in here.`,
          body: action({ to: '/me/sessions/end-others', label: 'Sign them out', style: 'danger' }),
        }),
    },
  )
}

function sessionCells(
  { id, ip, userAgent, lastSeenAt, createdAt }: Session,
  isCurrent: boolean,
  now: Date,
): Content[] {
  return [
    html`<span class="two-lines">
<span title="${userAgent}">${describeDevice(userAgent)} ${isCurrent && pill('ok', 'This device')}</span>
<small class="muted mono">${ip}</small>
</span>`,
    timeElement(lastSeenAt, now),
    timeElement(createdAt, now),
    isCurrent
      ? ''
      : html`<span class="row-actions">
${action({ to: `/me/sessions/${id}/end`, label: 'Sign out' })}
</span>`,
  ]
}

async function rename(visit: Visit): Promise<PageResult> {
  const { user, now } = visit
  const fullName = visit.form.get('full_name') ?? ''
  const errors = problemsOf({ full_name: () => assertName('Your name', fullName) })
  if (errors.full_name) return mePage(visit, errors)
  if (fullName.trim() === user.fullName)
    return { to: '/me', notice: { kind: 'ok', text: 'Nothing was changed.' } }
  await visit.change(async (scope) => {
    await updateFullName(scope, user.id, fullName, now)
    const changes = { name: { from: user.fullName, to: fullName.trim() } }
    await visit.audit(scope, {
      action: 'user.renamed',
      target: ownTarget(visit),
      details: { changes },
    })
  })
  return { to: '/me', notice: { kind: 'ok', text: 'Name updated.' } }
}

function currentPasswordField(errors: Errors): Html {
  return passwordField({
    name: 'current_password',
    label: 'Current password',
    hint: 'Protects your account on a device that you left unlocked.',
    autocomplete: 'current-password',
    errors,
  })
}

function emailPage({ user, form: input }: Visit, errors: Errors = {}): ConsolePage {
  return {
    title: 'Change your email',
    lead: `You sign in with it. It is ${user.email} now.`,
    crumbs: CRUMBS,
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: card(
      '',
      form({ to: '/me/email', submit: 'Change email', cancel: '/me', errors }, [
        textField({
          name: 'email',
          label: 'New email',
          type: 'email',
          value: input.get('email') ?? '',
          autocomplete: 'email',
          maxLength: 254,
          isRequired: true,
          errors,
        }),
        currentPasswordField(errors),
      ]),
    ),
  }
}

async function changeEmail(visit: Visit): Promise<PageResult> {
  const { user, now } = visit
  const email = visit.form.get('email') ?? ''
  const errors = problemsOf({ email: () => assertEmail(email) })
  if (errors.email) return emailPage(visit, errors)
  const problem = await checkOwnPassword(visit, visit.form.get('current_password') ?? '')
  if (problem) return emailPage(visit, { current_password: [problem] })
  try {
    await visit.throttle('change_email', user.id)
    await visit.change(async (scope) => {
      await updateEmail(scope, user.id, email, now)
      const changes = { email: { from: user.email, to: email.trim() } }
      await visit.audit(scope, {
        action: 'user.email_changed',
        target: ownTarget(visit),
        details: { changes },
      })
    })
  } catch (error) {
    if (error instanceof TooOften) return emailPage(visit, { email: [error.message] })
    if (error instanceof EmailTaken)
      return emailPage(visit, { email: ['This email cannot be used. Enter another one.'] })
    throw error
  }
  return { to: '/me', notice: { kind: 'ok', text: `From now on, sign in as ${email.trim()}.` } }
}

function passwordPage({ user }: Visit, errors: Errors = {}): ConsolePage {
  return {
    title: 'Change your password',
    lead: 'This signs out your other devices. API keys keep working.',
    crumbs: CRUMBS,
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: card(
      '',
      form({ to: '/me/password', submit: 'Change password', cancel: '/me', errors }, [
        usernameField(user.email),
        currentPasswordField(errors),
        passwordField({
          name: 'new_password',
          label: 'New password',
          hint: PASSWORD_HINT,
          autocomplete: 'new-password',
          errors,
        }),
      ]),
    ),
  }
}

async function changePassword(visit: Visit): Promise<PageResult> {
  const { user, now, session } = visit
  const password = visit.form.get('new_password') ?? ''
  const errors = problemsOf({ new_password: () => assertPassword(password) })
  if (errors.new_password) return passwordPage(visit, errors)
  const problem = await checkOwnPassword(visit, visit.form.get('current_password') ?? '')
  if (problem) return passwordPage(visit, { current_password: [problem] })
  const passwordHash = await hashPassword(password)
  const ended = await visit.change(async (scope) => {
    await updatePassword(scope, user.id, passwordHash, now)
    // The password link is no longer needed.
    await deleteInvitation(scope, user.id)
    await visit.audit(scope, { action: 'user.password_changed', target: ownTarget(visit) })
    return deleteSessions(scope, user.id, session.id)
  })
  return { to: '/me', notice: { kind: 'ok', text: `Password updated.${formatEnded(ended)}` } }
}

const formatEnded = (ended: number): string =>
  ended === 0
    ? ''
    : ` ${counted(ended, 'other session')} ${ended === 1 ? 'was' : 'were'} signed out.`

async function endSession(visit: Visit): Promise<PageResult> {
  const { user, params, now, session: current } = visit
  const id = params.session?.toLowerCase()
  if (id === current.id) {
    await visit.signOut()
    return { to: '/sign-in?signed-out' }
  }
  const session = (await listSessions(visit.scope, user.id, now)).find((one) => one.id === id)
  if (!session) return visit.ctx.throw(404)
  const device = describeDevice(session.userAgent)
  await visit.change(async (scope) => {
    await deleteSession(scope, user.id, session.id)
    await visit.audit(scope, {
      action: 'session.ended',
      target: { type: 'session', id: session.id, name: device },
    })
  })
  return { to: '/me', notice: { kind: 'ok', text: `${device} is signed out.` } }
}

async function endOthers(visit: Visit): Promise<PageResult> {
  const { user, session } = visit
  const ended = await visit.change(async (scope) => {
    const count = await deleteSessions(scope, user.id, session.id)
    if (count > 0)
      await visit.audit(scope, {
        action: 'session.others_ended',
        target: ownTarget(visit),
        details: { count },
      })
    return count
  })
  return {
    to: '/me',
    notice: {
      kind: 'ok',
      text: ended === 0 ? 'You have no other sessions.' : formatEnded(ended).trim(),
    },
  }
}
