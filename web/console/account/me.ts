/** The profile of the signed-in user: name, email, password, sessions, theme, time zone. */
import { assertPassword, hashPassword } from '../../../auth/password.ts'
import { describeDevice } from '../../../auth/session.ts'
import { deleteInvitation } from '../../../records/invitations.ts'
import { parseName } from '../../../records/names.ts'
import { updatePassword } from '../../../records/passwords.ts'
import {
  deleteSession,
  deleteSessions,
  listSessions,
  type Session,
} from '../../../records/sessions.ts'
import {
  EmailTaken,
  modules,
  parseEmail,
  updateEmail,
  updateFullName,
  userTarget,
} from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import {
  checkFields,
  type Errors,
  form,
  formPage,
  formStatus,
  passwordField,
  selectField,
  typedFields,
} from '../form-fields.ts'
import { capital, counted } from '../format.ts'
import { parseTheme, ROLES, themes } from '../layout.ts'
import {
  anyUser,
  type ConsolePage,
  get,
  type PageResult,
  post,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { formatGrants, MODULE_LABELS, PERMISSION_LABELS } from '../people/access-form.ts'
import { chooseZone, zoneField } from '../time-zone.ts'
import {
  actionForm,
  buttonLink,
  card,
  confirmButton,
  type Fact,
  facts,
  NO_VALUE,
  pill,
  table,
  timeElement,
  twoLines,
} from '../ui.ts'
import { chooseTheme, signInAs } from './sign-in.ts'
import {
  checkOwnPassword,
  emailField,
  nameField,
  newPasswordField,
  UNUSABLE_EMAIL,
  usernameField,
} from './user-fields.ts'

export const meRoutes: Route[] = [
  get('/me', anyUser, (visit) => mePage(visit)),
  post('/me', anyUser, rename),
  post('/me/browser', anyUser, saveForBrowser),
  get('/me/email', anyUser, (visit) => emailPage(visit)),
  post('/me/email', anyUser, changeEmail),
  get('/me/password', anyUser, (visit) => passwordPage(visit)),
  post('/me/password', anyUser, changePassword),
  post('/me/sessions/end-others', anyUser, endOthers),
  post('/me/sessions/:session/end', anyUser, endSession),
]

const CRUMBS = [{ label: 'Your profile', to: '/me' }]

async function mePage(visit: Visit, errors: Errors = {}): Promise<ConsolePage> {
  const { user, form: input } = visit
  const field = typedFields(input, errors)
  return {
    title: 'Your profile',
    lead: 'Your name, sign-in details and sessions.',
    status: formStatus(errors),
    isNarrow: true,
    body: [
      card(
        'Name',
        form(
          { to: '/me', submit: 'Save name', errors },
          nameField({
            ...field('full_name', 'Full name', user.fullName),
            hint: 'Visible to everyone in your account.',
          }),
        ),
      ),
      card(
        'Sign-in',
        facts([
          ['Email', factWithLink(user.email, '/me/email', 'Change email')],
          ['Password', factWithLink('••••••••', '/me/password', 'Change password')],
        ]),
      ),
      await sessionsCard(visit),
      card('This browser', browserForm(visit)),
      card('Your access', facts(accessFacts(visit))),
    ],
  }
}

function browserForm({ ctx }: Visit): Html {
  const themeField = selectField({
    name: 'theme',
    label: 'Theme',
    value: parseTheme(ctx.cookies.get('muster-theme')),
    isRequired: true,
    choices: themes.map((value) => ({ value, label: capital(value) })),
  })
  return form(
    { to: '/me/browser', submit: 'Save theme and time zone', style: '' },
    html`<div class="side-by-side">${themeField}${zoneField(ctx)}</div>`,
  )
}

function saveForBrowser(visit: Visit): PageResult {
  chooseTheme(visit)
  chooseZone(visit)
  return redirect('/me', 'Theme and time zone saved for this browser.')
}

function factWithLink(fact: string, to: string, label: string): Html {
  return html`<span class="fact-with"><span>${fact}</span>${buttonLink(to, label)}</span>`
}

function accessFacts({ user }: Visit): Fact[] {
  return [
    ['Role', ROLES[user.role]],
    user.role !== 'member' && ['Manages', formatGrants(user) || NO_VALUE],
    ...modules.map(
      (module): Fact => [MODULE_LABELS[module], PERMISSION_LABELS[user.permissions[module]]],
    ),
  ]
}

async function sessionsCard(visit: Visit): Promise<Html> {
  const { scope, user, now, session: current } = visit
  const sessions = await listSessions(scope, user.id, now)
  const otherCount = sessions.length - 1
  const columns = ['Device', 'Last seen', 'Signed in', { label: 'Actions', isHidden: true }]
  const rows = sessions.map((session) => ({
    cells: sessionCells(session, session.id === current.id, now),
  }))
  const endOthersButton = confirmButton('Sign out other devices', {
    title: 'Sign out all other devices?',
    text: `This ends ${counted(otherCount, 'other session')} now. You stay signed in here.`,
    body: actionForm({
      to: '/me/sessions/end-others',
      label: 'Sign out other devices',
      style: 'danger',
    }),
  })
  return card('Sessions', table('Sessions', columns, rows), otherCount > 0 && endOthersButton)
}

function sessionCells(
  { id, ip, userAgent, lastSeenAt, createdAt }: Session,
  isCurrent: boolean,
  now: Date,
): Content[] {
  const device = html`<span title="${userAgent}">${describeDevice(userAgent)}</span>`
  const endButton = actionForm({ to: `/me/sessions/${id}/end`, label: 'Sign out' })
  return [
    twoLines(
      [device, isCurrent && [' ', pill('ok', 'This device')]],
      html`<span class="mono">${ip}</span>`,
    ),
    timeElement(lastSeenAt, now),
    timeElement(createdAt, now),
    !isCurrent && html`<span class="row-actions">${endButton}</span>`,
  ]
}

async function rename(visit: Visit): Promise<PageResult> {
  const { user, now } = visit
  const fullName = visit.form.get('full_name') ?? ''
  const errors = checkFields({ full_name: () => parseName('Your name', fullName) })
  if (errors.full_name) return mePage(visit, errors)
  if (fullName.trim() === user.fullName) return redirect('/me', 'No changes to save.')
  await visit.change(async (scope) => {
    await updateFullName(scope, user.id, fullName, now)
    const changes = { name: { from: user.fullName, to: fullName.trim() } }
    await visit.audit(scope, 'user.renamed', userTarget(visit.user), { changes })
  })
  return redirect('/me', 'Name updated.')
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
  const field = typedFields(input, errors)
  return formPage(
    {
      title: 'Change your email',
      lead: `You sign in with your email. It is ${user.email} now.`,
      crumbs: CRUMBS,
    },
    { to: '/me/email', submit: 'Change email', cancel: '/me', errors },
    [
      emailField({ ...field('email', 'New email'), autocomplete: 'email' }),
      currentPasswordField(errors),
    ],
  )
}

async function changeEmail(visit: Visit): Promise<PageResult> {
  const { user, now } = visit
  const email = visit.form.get('email') ?? ''
  const errors = checkFields({ email: () => parseEmail(email) })
  if (errors.email) return emailPage(visit, errors)
  const passwordErrors = await checkOwnPassword(visit, 'current_password')
  if (passwordErrors) return emailPage(visit, passwordErrors)
  const tooOften = await visit.throttles.consume('change_email', user.id)
  if (tooOften) return emailPage(visit, { email: [tooOften.message] })
  try {
    await visit.change(async (scope) => {
      await updateEmail(scope, user.id, email, now)
      const changes = { email: { from: user.email, to: email.trim() } }
      await visit.audit(scope, 'user.email_changed', userTarget(visit.user), { changes })
    })
  } catch (error) {
    if (error instanceof EmailTaken) return emailPage(visit, UNUSABLE_EMAIL)
    throw error
  }
  return redirect('/me', `From now on, sign in as ${email.trim()}.`)
}

function passwordPage({ user }: Visit, errors: Errors = {}): ConsolePage {
  return formPage(
    {
      title: 'Change your password',
      lead: 'This signs out your other devices. API keys keep working.',
      crumbs: CRUMBS,
    },
    { to: '/me/password', submit: 'Change password', cancel: '/me', errors },
    [
      usernameField(user.email),
      currentPasswordField(errors),
      newPasswordField({ name: 'new_password', label: 'New password', errors }),
    ],
  )
}

async function changePassword(visit: Visit): Promise<PageResult> {
  const { user, now } = visit
  const password = visit.form.get('new_password') ?? ''
  const errors = checkFields({
    new_password: () => assertPassword(password, [user.email, user.fullName]),
  })
  if (errors.new_password) return passwordPage(visit, errors)
  const passwordErrors = await checkOwnPassword(visit, 'current_password')
  if (passwordErrors) return passwordPage(visit, passwordErrors)
  const passwordHash = await hashPassword(password)
  const endedCount = await visit.change(async (scope) => {
    await updatePassword(scope, user.id, passwordHash, now)
    // An open password link is no longer needed.
    await deleteInvitation(scope, user.id)
    await visit.audit(scope, 'user.password_changed', userTarget(visit.user))
    return deleteSessions(scope, user.id)
  })
  // The session of this device has ended, too, because somebody may have copied its cookie.
  await signInAs(visit, user, passwordHash)
  return redirect('/me', `Password updated.${formatEnded(endedCount - 1)}`)
}

const formatEnded = (otherCount: number): string =>
  otherCount === 0
    ? ''
    : ` ${counted(otherCount, 'other session')} ${otherCount === 1 ? 'was' : 'were'} signed out.`

async function endSession(visit: Visit): Promise<PageResult> {
  const { user, params, now, session: current } = visit
  const id = params.session
  if (id === current.id) {
    await visit.sessions.end(visit.ctx)
    return { to: '/sign-in?signed-out' }
  }
  const session = (await listSessions(visit.scope, user.id, now)).find((one) => one.id === id)
  if (!session) return visit.ctx.throw(404)
  const device = describeDevice(session.userAgent)
  await visit.change(async (scope) => {
    await deleteSession(scope, user.id, session.id)
    await visit.audit(scope, 'session.ended', { type: 'session', id: session.id, name: device })
  })
  return redirect('/me', `${device} is signed out.`)
}

async function endOthers(visit: Visit): Promise<PageResult> {
  const { user, session } = visit
  const endedCount = await visit.change(async (scope) => {
    const count = await deleteSessions(scope, user.id, session.id)
    if (count > 0)
      await visit.audit(scope, 'session.others_ended', userTarget(visit.user), { count })
    return count
  })
  const text = endedCount === 0 ? 'You have no other sessions.' : formatEnded(endedCount).trim()
  return redirect('/me', text)
}
