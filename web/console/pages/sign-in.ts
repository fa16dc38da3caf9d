/** Signing in and out, and the theme. */
import { verifyPassword } from '../../../auth/password.ts'
import { TooOften } from '../../../auth/rate-limit.ts'
import { deviceOf } from '../../../auth/session.ts'
import { insertAuditEntry } from '../../../records/audit-log.ts'
import { transaction, writeScope } from '../../../records/db.ts'
import { emailKey, findCredentials, type User } from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import { themes } from '../layout.ts'
import { type Answer, type GuestVisit, guestGet, guestPost, type Page, type Route } from '../page.ts'
import { type Errors, form, note, passwordField, textField } from '../ui.ts'

export const signInRoutes: Route[] = [
  guestGet('/sign-in', (visit) => (visit.ctx.state.visitor ? { to: wayBack(visit.query.get('next')) } : signInPage(visit))),
  guestPost('/sign-in', signIn),
  guestPost('/sign-out', signOut),
  guestPost('/theme', chooseTheme),
]

/** Says the same whether there is such a user, whether they have a password, and whether they are deactivated. */
const WRONG = 'The e-mail address or the password is wrong.'

function signInPage({ query, form: given, config }: GuestVisit, status = 200, problem?: string, errors: Errors = {}): Page {
  return {
    title: 'Sign in',
    lead: 'API keys, webhooks and records of your account.',
    status,
    isNarrow: true,
    body: html`${query.has('signed-out') && status === 200 && note('ok', 'You are signed out.')}${form(
      { to: '/sign-in', submit: 'Sign in', problem, errors },
      [
        html`<input type="hidden" name="next" value="${given.get('next') ?? query.get('next')}">`,
        textField({
          name: 'email',
          label: 'E-mail address',
          type: 'email',
          value: given.get('email') ?? '',
          autocomplete: 'username',
          isRequired: true,
          errors,
        }),
        passwordField({ name: 'password', label: 'Password', autocomplete: 'current-password', errors }),
      ],
    )}${config.signUp && html`<p class="aside">New here? <a href="/console/sign-up">Create an account</a></p>`}`,
  }
}

async function signIn(visit: GuestVisit): Promise<Answer> {
  const email = visit.form.get('email') ?? ''
  const password = visit.form.get('password') ?? ''
  const errors: Errors = {
    ...(email.trim() === '' && { email: ['Give your e-mail address.'] }),
    ...(password === '' && { password: ['Give your password.'] }),
  }
  if (Object.keys(errors).length > 0) return signInPage(visit, 422, undefined, errors)

  const place = `${visit.ip} ${emailKey(email)}`
  try {
    // All three before the password is looked at: who guesses learns nothing more.
    await visit.throttle('sign_in_ip', visit.ip)
    await visit.throttle('sign_in', place)
    await visit.throttle('sign_in_account', emailKey(email))
  } catch (error) {
    if (!(error instanceof TooOften)) throw error
    visit.ctx.set('Retry-After', String(error.retryAfterSeconds))
    return signInPage(visit, 429, error.message)
  }
  const found = await findCredentials(visit.db.read, email)
  const isRight = await verifyPassword(found?.passwordHash ?? null, password)
  if (!found || !isRight || found.user.status !== 'active') return signInPage(visit, 401, WRONG)
  await visit.resetThrottle('sign_in', place)
  await signInAs(visit, found.user)
  return { to: wayBack(visit.form.get('next')) }
}

/** Signs somebody in, who has proved who they are, and notes it in the audit log. */
export async function signInAs(visit: GuestVisit, user: User): Promise<void> {
  const target = { type: 'user', id: user.id, name: user.fullName } as const
  const details = { device: deviceOf(visit.ctx.get('User-Agent')) }
  await transaction(visit.db, (trx) =>
    insertAuditEntry(writeScope(trx, user.accountId), { user, action: 'session.started', target, details, ip: visit.ip }, visit.now),
  )
  await visit.signIn(user)
}

/** Below /console, and nowhere else: an address from outside must not lead away. */
function wayBack(next: string | null): string {
  if (next === null || !next.startsWith('/console/')) return ''
  const url = new URL(next, 'http://console.invalid')
  return url.host === 'console.invalid' && url.pathname.startsWith('/console/')
    ? `${url.pathname.slice('/console'.length)}${url.search}`
    : ''
}

async function signOut(visit: GuestVisit): Promise<Answer> {
  await visit.signOut()
  return { to: '/sign-in?signed-out' }
}

const YEAR_MS = 365 * 86_400_000

/** A cookie and not a script, so that no page is painted in the wrong theme first. */
function chooseTheme({ form: given, ctx }: GuestVisit): Answer {
  const theme = themes.find((name) => name === given.get('theme')) ?? 'system'
  ctx.cookies.set('muster-theme', theme, { httpOnly: true, sameSite: 'lax', maxAge: YEAR_MS })
  const { pathname, search } = new URL(ctx.get('Referer') || '/', 'http://console.invalid')
  return { to: wayBack(`${pathname}${search}`) }
}
