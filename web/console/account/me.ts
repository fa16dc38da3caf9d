/** Who somebody is, how they sign in and where they are signed in. */
import { assertPassword, hashPassword } from '../../../auth/password.ts'
import { TooOften } from '../../../auth/rate-limit.ts'
import { deviceOf } from '../../../auth/session.ts'
import { deleteInvitation } from '../../../records/invitations.ts'
import { assertName } from '../../../records/names.ts'
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
  updatePassword,
} from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { ROLES, themes } from '../layout.ts'
import { type Answer, anyUser, get, type Page, post, type Route, type Visit } from '../page.ts'
import { MODULES, managedBy, PERMISSIONS } from '../people/people.ts'
import {
  action,
  buttonLink,
  card,
  confirmed,
  counted,
  type Errors,
  facts,
  form,
  passwordField,
  pill,
  problemsOf,
  selectField,
  table,
  textField,
  timeOf,
} from '../ui.ts'
import { PASSWORD_HINT, usernameOf, wrongPassword } from './own-password.ts'

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

const CRUMBS = [{ label: 'You', to: '/me' }]
const targetOf = ({ user }: Visit) => ({ type: 'user', id: user.id, name: user.fullName }) as const

async function mePage(visit: Visit, errors: Errors = {}): Promise<Page> {
  const { user, form: given, ctx } = visit
  const theme = themes.find((name) => name === ctx.cookies.get('muster-theme')) ?? 'system'
  return {
    title: 'You',
    lead: 'Your name, how you sign in, and where you are signed in.',
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
            hint: 'Others of your account see it.',
            value: given.get('full_name') ?? user.fullName,
            autocomplete: 'name',
            maxLength: 200,
            isRequired: true,
            errors,
          }),
        ),
      ),
      card(
        'Signing in',
        facts([
          ['E-mail address', factWith(user.email, '/me/email', 'Change the address')],
          ['Password', factWith('••••••••', '/me/password', 'Change the password')],
        ]),
      ),
      await sessionsCard(visit),
      card(
        'Theme',
        form(
          { to: '/theme', submit: 'Apply', style: '' },
          selectField({
            name: 'theme',
            label: 'Colours in this browser',
            value: theme,
            isRequired: true,
            choices: [
              { value: 'system', label: 'As the device' },
              { value: 'light', label: 'Light' },
              { value: 'dark', label: 'Dark' },
            ],
          }),
        ),
      ),
      card('What you may do', facts(rightsOf(visit))),
    ],
  }
}

function factWith(fact: string, to: string, label: string): Html {
  return html`<span class="fact-with"><span>${fact}</span>${buttonLink(to, label)}</span>`
}

function rightsOf({ user }: Visit): [string, Content][] {
  return [
    ['Role', ROLES[user.role]],
    ...(user.role === 'member'
      ? []
      : [['You manage', managedBy(user) || 'Neither API keys nor webhooks'] as [string, Content]]),
    ...modules.map((module): [string, Content] => [
      MODULES[module],
      PERMISSIONS[user.permissions[module]],
    ]),
  ]
}

async function sessionsCard(visit: Visit): Promise<Html> {
  const { scope, user, now, session: present } = visit
  const sessions = await listSessions(scope, user.id, now)
  const others = sessions.length - 1
  return card(
    'Where you are signed in',
    table(
      ['Device', 'Last seen', 'Signed in', { label: 'Actions', isHidden: true }],
      sessions.map((session) => ({ cells: sessionCells(session, session.id === present.id, now) })),
      { label: 'Sessions' },
    ),
    {
      actions:
        others > 0 &&
        confirmed('Sign out all others', {
          title: 'Sign out all other devices?',
          text: `${counted(others, 'other session')} of yours ${others === 1 ? 'ends' : 'end'} at once. You stay signed in here.`,
          body: action({ to: '/me/sessions/end-others', label: 'Sign them out', style: 'danger' }),
        }),
    },
  )
}

function sessionCells(
  { id, ip, userAgent, lastSeenAt, createdAt }: Session,
  isPresent: boolean,
  now: Date,
): Content[] {
  return [
    html`<span class="two-lines"><span title="${userAgent}">${deviceOf(userAgent)}${isPresent && html` ${pill('ok', 'This one')}`}</span><small class="muted mono">${ip}</small></span>`,
    timeOf(lastSeenAt, now),
    timeOf(createdAt, now),
    isPresent
      ? ''
      : html`<span class="row-actions">${action({ to: `/me/sessions/${id}/end`, label: 'Sign out' })}</span>`,
  ]
}

async function rename(visit: Visit): Promise<Answer> {
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
      target: targetOf(visit),
      details: { changes },
    })
  })
  return { to: '/me', notice: { kind: 'ok', text: 'Your name is changed.' } }
}

function presentPassword(errors: Errors): Html {
  return passwordField({
    name: 'current_password',
    label: 'Present password',
    hint: 'So that nobody else does this on a device that you left open.',
    autocomplete: 'current-password',
    errors,
  })
}

function emailPage({ user, form: given }: Visit, errors: Errors = {}): Page {
  return {
    title: 'Change your e-mail address',
    lead: `You sign in with it. It is ${user.email} now.`,
    crumbs: CRUMBS,
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: card(
      '',
      form({ to: '/me/email', submit: 'Change the address', cancel: '/me', errors }, [
        textField({
          name: 'email',
          label: 'New e-mail address',
          type: 'email',
          value: given.get('email') ?? '',
          autocomplete: 'email',
          maxLength: 254,
          isRequired: true,
          errors,
        }),
        presentPassword(errors),
      ]),
    ),
  }
}

async function changeEmail(visit: Visit): Promise<Answer> {
  const { user, now } = visit
  const email = visit.form.get('email') ?? ''
  const errors = problemsOf({ email: () => assertEmail(email) })
  if (errors.email) return emailPage(visit, errors)
  const wrong = await wrongPassword(visit, visit.form.get('current_password') ?? '')
  if (wrong) return emailPage(visit, { current_password: [wrong] })
  try {
    await visit.throttle('change_email', user.id)
    await visit.change(async (scope) => {
      await updateEmail(scope, user.id, email, now)
      const changes = { email: { from: user.email, to: email.trim() } }
      await visit.audit(scope, {
        action: 'user.email_changed',
        target: targetOf(visit),
        details: { changes },
      })
    })
  } catch (error) {
    if (error instanceof TooOften) return emailPage(visit, { email: [error.message] })
    if (error instanceof EmailTaken)
      return emailPage(visit, { email: ['This address cannot be used.'] })
    throw error
  }
  return { to: '/me', notice: { kind: 'ok', text: `You sign in as ${email.trim()} from now on.` } }
}

function passwordPage({ user }: Visit, errors: Errors = {}): Page {
  return {
    title: 'Change your password',
    lead: 'Your other devices are signed out. API keys go on working.',
    crumbs: CRUMBS,
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: card(
      '',
      form({ to: '/me/password', submit: 'Change the password', cancel: '/me', errors }, [
        usernameOf(user.email),
        presentPassword(errors),
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

async function changePassword(visit: Visit): Promise<Answer> {
  const { user, now, session } = visit
  const password = visit.form.get('new_password') ?? ''
  const errors = problemsOf({ new_password: () => assertPassword(password) })
  if (errors.new_password) return passwordPage(visit, errors)
  const wrong = await wrongPassword(visit, visit.form.get('current_password') ?? '')
  if (wrong) return passwordPage(visit, { current_password: [wrong] })
  const passwordHash = await hashPassword(password)
  const ended = await visit.change(async (scope) => {
    await updatePassword(scope, user.id, passwordHash, now)
    // One that was made for who had forgotten it is not needed any more.
    await deleteInvitation(scope, user.id)
    await visit.audit(scope, { action: 'user.password_changed', target: targetOf(visit) })
    return deleteSessions(scope, user.id, session.id)
  })
  return { to: '/me', notice: { kind: 'ok', text: `Your password is changed.${saidOf(ended)}` } }
}

const saidOf = (ended: number): string =>
  ended === 0
    ? ''
    : ` ${counted(ended, 'other session')} ${ended === 1 ? 'was' : 'were'} signed out.`

async function endSession(visit: Visit): Promise<Answer> {
  const { user, params, now, session: present } = visit
  const id = params.session?.toLowerCase()
  if (id === present.id) {
    await visit.signOut()
    return { to: '/sign-in?signed-out' }
  }
  const session = (await listSessions(visit.scope, user.id, now)).find((one) => one.id === id)
  if (!session) return visit.ctx.throw(404)
  const device = deviceOf(session.userAgent)
  await visit.change(async (scope) => {
    await deleteSession(scope, user.id, session.id)
    await visit.audit(scope, {
      action: 'session.ended',
      target: { type: 'session', id: session.id, name: device },
    })
  })
  return { to: '/me', notice: { kind: 'ok', text: `${device} is signed out.` } }
}

async function endOthers(visit: Visit): Promise<Answer> {
  const { user, session } = visit
  const ended = await visit.change(async (scope) => {
    const count = await deleteSessions(scope, user.id, session.id)
    if (count > 0)
      await visit.audit(scope, {
        action: 'session.others_ended',
        target: targetOf(visit),
        details: { count },
      })
    return count
  })
  return {
    to: '/me',
    notice: {
      kind: 'ok',
      text: ended === 0 ? 'You are signed in nowhere else.' : saidOf(ended).trim(),
    },
  }
}
