/** Signing in and out, and the theme. */
import { verifyPassword } from '../../../auth/password.ts'
import { Refused } from '../../../records/refused.ts'
import { emailKey, findCredentials } from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import { themes } from '../layout.ts'
import { type Answer, type GuestVisit, guestGet, guestPost, type Page, type Route } from '../page.ts'
import { form, note, textField } from '../ui.ts'

export const signInRoutes: Route[] = [
  guestGet('/sign-in', (visit) => signInPage(visit)),
  guestPost('/sign-in', signIn),
  guestPost('/sign-out', signOut),
  guestPost('/theme', chooseTheme),
]

/** Says the same whether there is such a user, whether they have a password, and whether they are deactivated. */
const WRONG = 'The e-mail address or the password is wrong.'

function signInPage({ query, form: given, config }: GuestVisit, problem?: string, status = 200): Page {
  const next = given.get('next') ?? query.get('next') ?? ''
  return {
    title: 'Sign in',
    status,
    isNarrow: true,
    body: html`${query.has('signed-out') && note('ok', 'You are signed out.')}${form({ to: '/sign-in', submit: 'Sign in', problem }, [
      html`<input type="hidden" name="next" value="${next}">`,
      textField({
        name: 'email',
        label: 'E-mail address',
        type: 'email',
        value: given.get('email') ?? '',
        autocomplete: 'username',
        isRequired: true,
      }),
      textField({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', isRequired: true }),
    ])}${config.signUp && html`<p class="aside">New here? <a href="/console/sign-up">Create an account</a></p>`}`,
  }
}

async function signIn(visit: GuestVisit): Promise<Answer> {
  const email = visit.form.get('email') ?? ''
  const password = visit.form.get('password') ?? ''
  try {
    // All three before the password is looked at: who guesses learns nothing more.
    await visit.throttle('sign_in_ip', visit.ip)
    await visit.throttle('sign_in', `${visit.ip} ${emailKey(email)}`)
    await visit.throttle('sign_in_account', emailKey(email))
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return signInPage(visit, error.message, 429)
  }
  const found = await findCredentials(visit.db.read, email)
  const isRight = await verifyPassword(found?.passwordHash ?? null, password)
  if (!found || !isRight || found.user.status !== 'active') return signInPage(visit, WRONG, 401)
  await visit.signIn(found.user)
  return { to: wayBack(visit.form.get('next')) }
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
