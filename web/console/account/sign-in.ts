/** Sign-in, sign-out, the theme and the time zone. */
import { deviceCookieValue, isKnownDevice } from '../../../auth/device-cookie.ts'
import { verifyPassword, whileQueueHasRoom } from '../../../auth/password.ts'
import type { TooOften } from '../../../auth/rate-limit.ts'
import { describeDevice } from '../../../auth/session.ts'
import { Refused } from '../../../errors.ts'
import { insertAuditEntry } from '../../../records/audit-log.ts'
import { accountTransaction } from '../../../records/database/scope.ts'
import { findCredentials, findPasswordHash } from '../../../records/passwords.ts'
import { emailKey, findUser, type User, userTarget } from '../../../records/users.ts'
import { listKeys } from '../../../webhooks/transport/secret.ts'
import { html } from '../../shared/html.ts'
import {
  type Errors,
  type FormOutcome,
  form,
  hasErrors,
  passwordField,
  typedFields,
} from '../form-fields.ts'
import { parseTheme } from '../layout.ts'
import {
  type ConsolePage,
  type GuestVisit,
  guestGet,
  guestPost,
  type PageResult,
  type Route,
} from '../page.ts'
import { refererPath, toConsolePath } from '../return-path.ts'
import { chooseZone, YEAR_MS } from '../time-zone.ts'
import { hiddenInput, note } from '../ui.ts'
import { emailField } from './user-fields.ts'

export const signInRoutes: Route[] = [
  guestGet('/sign-in', (visit) =>
    visit.ctx.state.visitor ? { to: toConsolePath(visit.query.get('next')) } : signInPage(visit),
  ),
  guestPost('/sign-in', signIn),
  guestPost('/sign-out', signOut),
  guestPost('/theme', staying(chooseTheme)),
  guestPost('/time-zone', staying(chooseZone)),
]

/** The choice leads back to the page on which it was made. */
function staying(choose: (visit: GuestVisit) => void): (visit: GuestVisit) => PageResult {
  return (visit) => {
    choose(visit)
    return { to: refererPath(visit.ctx) }
  }
}

const DEVICE_COOKIE = 'muster-device'

/** One text for unknown, deactivated and invited users and for wrong passwords.
 *  It does not reveal whether a user exists. */
const WRONG_CREDENTIALS = 'The email or the password is wrong.'

/** Password links work after a sign-in limit is reached, so other people's guesses cannot lock a
 *  user out. */
const OTHER_WAY =
  'If you cannot wait, ask the Account Owner or the operator of this service for a link ' +
  'to set a new password.'

/** Shown only after the right password, so that others do not learn about the account. */
const SUSPENDED = 'Your account is suspended. Ask the operator of this service.'

function signInPage(
  { query, form: input, config }: GuestVisit,
  { status = 200, problem, errors = {} }: FormOutcome = {},
): ConsolePage {
  const field = typedFields(input, errors)
  return {
    title: 'Sign in',
    lead: 'Manage the records, API keys and webhooks of your account.',
    status,
    isNarrow: true,
    body: [
      query.has('signed-out') && status === 200 && note('ok', 'You are signed out.'),
      form({ to: '/sign-in', submit: 'Sign in', problem, errors }, [
        hiddenInput('next', input.get('next') ?? query.get('next') ?? ''),
        emailField({ ...field('email', 'Email'), autocomplete: 'username' }),
        passwordField({
          name: 'password',
          label: 'Password',
          autocomplete: 'current-password',
          errors,
        }),
      ]),
      passwordHint,
      config.isSignUpOpen && signUpHint,
    ],
  }
}

const passwordHint = html`<p class="aside">
  Forgot your password? Ask the Account Owner for a link to set a new one. If you are the Account
  Owner, ask the operator of this service.
</p>`

const signUpHint = html`<p class="aside">
  New here? <a href="/console/sign-up">Create an account</a>
</p>`

async function signIn(visit: GuestVisit): Promise<PageResult> {
  const email = visit.form.get('email') ?? ''
  const password = visit.form.get('password') ?? ''
  const errors: Errors = {
    ...(email.trim() === '' && { email: ['Enter your email.'] }),
    ...(password === '' && { password: ['Enter your password.'] }),
  }
  if (hasErrors(errors)) return signInPage(visit, { status: 422, errors })
  return whileQueueHasRoom(() => checkCredentials(visit, email, password))
}

async function checkCredentials(
  visit: GuestVisit,
  email: string,
  password: string,
): Promise<PageResult> {
  const found = await findCredentials(visit.db.read, email)
  // Counted before the password is verified, so that a blocked guess tells nothing about the
  // password.
  const tooOften = await countSignIn(visit, email, found?.user)
  if (tooOften) {
    if (found) auditRefusal(visit, found.user, { is_blocked: true })
    visit.ctx.set('Retry-After', String(tooOften.retryAfterSeconds))
    const problem = `${tooOften.message} ${OTHER_WAY}`
    return signInPage(visit, { status: 429, problem })
  }
  const isCorrect = await verifyPassword(found?.passwordHash ?? null, password)
  if (found && !isCorrect) auditRefusal(visit, found.user, { is_blocked: false })
  if (!found || !isCorrect || found.user.status !== 'active')
    return signInPage(visit, { status: 401, problem: WRONG_CREDENTIALS })
  if (found.isSuspended) return signInPage(visit, { status: 403, problem: SUSPENDED })
  await visit.throttles.reset('sign_in', networkAndEmail(visit, email))
  try {
    await signInAs(visit, found.user, found.passwordHash)
  } catch (error) {
    if (error instanceof CredentialsChanged)
      return signInPage(visit, { status: 401, problem: WRONG_CREDENTIALS })
    throw error
  }
  return { to: toConsolePath(visit.form.get('next')) }
}

/** Returns before the entry is stored: the time of a response must not tell which emails exist. */
function auditRefusal(visit: GuestVisit, user: User, details: { is_blocked: boolean }): void {
  insertRefusal(visit, user, details).catch((error: unknown) =>
    visit.log.error({ err: error }, 'A refused sign-in is missing in the audit log'),
  )
}

/** Stores at most one entry per user and `is_blocked` in 15 minutes, so that guesses do not fill
 *  the audit log. */
async function insertRefusal(
  { throttles, db, ip, now }: GuestVisit,
  user: User,
  details: { is_blocked: boolean },
): Promise<void> {
  const key = `${user.id} ${details.is_blocked}`
  if (await throttles.consume('refused_sign_in_entry', key)) return
  const entry = { user, action: 'session.refused', target: userTarget(user), details, ip }
  await accountTransaction(db, user.accountId, (scope) => insertAuditEntry(scope, entry, now))
}

function networkAndEmail({ network }: GuestVisit, email: string): string {
  return `${network} ${emailKey(email)}`
}

/** Counts a sign-in. Returns undefined within all limits. A device on which the user has signed in
 *  before is exempt from the limit across all networks, so that guesses of others do not lock the
 *  user out. */
async function countSignIn(
  visit: GuestVisit,
  email: string,
  user: User | undefined,
): Promise<TooOften | undefined> {
  const { network, config, ctx, throttles } = visit
  const tooOften =
    (await throttles.consume('sign_in_ip', network)) ??
    (await throttles.consume('sign_in', networkAndEmail(visit, email)))
  if (tooOften) return tooOften
  const isKnown = isKnownDevice(
    listKeys(config.secretKeys),
    user?.id ?? '',
    ctx.cookies.get(DEVICE_COOKIE),
  )
  return isKnown ? undefined : throttles.consume('sign_in_account', emailKey(email))
}

/** The password was changed, or the user deactivated, after the password was verified. */
class CredentialsChanged extends Refused {}

/** Signs in a user whose password was verified against `passwordHash`. Throws `Refused`
 *  when another hash is stored now, or the user is not active: a change of the password ends all
 *  sessions, so no session may begin with the old password. */
export async function signInAs(
  visit: GuestVisit,
  user: User,
  passwordHash: string | null,
): Promise<void> {
  const { ctx, config, ip, now } = visit
  const target = userTarget(user)
  const details = { device: describeDevice(ctx.get('User-Agent')) }
  await visit.sessions.start(ctx, user, async (scope) => {
    const current = await findUser(scope, user.id, { forUpdate: true })
    if (current?.status !== 'active' || (await findPasswordHash(scope, user.id)) !== passwordHash)
      throw new CredentialsChanged('Your password has changed. Sign in with the new one.')
    await insertAuditEntry(scope, { user, action: 'session.started', target, details, ip }, now)
  })
  ctx.cookies.set(DEVICE_COOKIE, deviceCookieValue(config.secretKeys.newest(), user.id), {
    httpOnly: true,
    sameSite: 'lax',
    path: '/console',
    maxAge: YEAR_MS,
  })
}

async function signOut({ sessions, ctx }: GuestVisit): Promise<PageResult> {
  await sessions.end(ctx)
  return { to: '/sign-in?signed-out' }
}

/** Stores the theme in a cookie, so that no page is first painted in the wrong theme. */
export function chooseTheme({ form: input, ctx }: GuestVisit): void {
  ctx.cookies.set('muster-theme', parseTheme(input.get('theme')), {
    httpOnly: true,
    sameSite: 'lax',
    maxAge: YEAR_MS,
  })
}
