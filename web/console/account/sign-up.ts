/** Creating an account with its Account Owner. 404 unless SIGN_UP is on. */
import { assertPassword, hashPassword } from '../../../auth/password.ts'
import { TooOften } from '../../../auth/rate-limit.ts'
import { insertAccount } from '../../../records/accounts.ts'
import { insertAuditEntry } from '../../../records/audit-log.ts'
import { writeScope } from '../../../records/database/scope.ts'
import { transaction } from '../../../records/database/transaction.ts'
import { assertName } from '../../../records/names.ts'
import { assertEmail, EmailTaken, findUser, type User } from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import { type Errors, form, passwordField, problemsOf, textField } from '../form-fields.ts'
import {
  type ConsolePage,
  type GuestVisit,
  guestGet,
  guestPost,
  type PageResult,
  type Route,
} from '../page.ts'
import { PASSWORD_HINT } from './own-password.ts'
import { signInAs } from './sign-in.ts'

export const signUpRoutes: Route[] = [
  guestGet('/sign-up', openSignUp),
  guestPost('/sign-up', signUp),
]

function assertOpen({ config, ctx }: GuestVisit): void {
  if (!config.isSignUpOpen) ctx.throw(404)
}

function openSignUp(visit: GuestVisit): PageResult {
  assertOpen(visit)
  return visit.ctx.state.visitor ? { to: '' } : signUpPage(visit)
}

function signUpPage(
  { form: input }: GuestVisit,
  status = 200,
  errors: Errors = {},
  problem?: string,
): ConsolePage {
  const value = (name: string): string => input.get(name) ?? ''
  return {
    title: 'Create an account',
    lead: 'You own the account and can invite others later.',
    status,
    isNarrow: true,
    body: [
      form({ to: '/sign-up', submit: 'Create account', problem, errors }, [
        textField({
          name: 'account_name',
          label: 'Account name',
          hint: 'Your company or team.',
          value: value('account_name'),
          autocomplete: 'organization',
          maxLength: 200,
          isRequired: true,
          errors,
        }),
        textField({
          name: 'full_name',
          label: 'Your name',
          value: value('full_name'),
          autocomplete: 'name',
          maxLength: 200,
          isRequired: true,
          errors,
        }),
        textField({
          name: 'email',
          label: 'Email',
          type: 'email',
          value: value('email'),
          autocomplete: 'username',
          maxLength: 254,
          isRequired: true,
          errors,
        }),
        passwordField({
          name: 'password',
          label: 'Password',
          hint: PASSWORD_HINT,
          autocomplete: 'new-password',
          errors,
        }),
      ]),
      signInHint,
    ],
  }
}

const signInHint = html`<p class="aside">
Already have an account? <a href="/console/sign-in">Sign in</a>
</p>`

async function signUp(visit: GuestVisit): Promise<PageResult> {
  assertOpen(visit)
  const value = (name: string): string => visit.form.get(name) ?? ''
  const [name, fullName, email, password] = ['account_name', 'full_name', 'email', 'password'].map(
    value,
  ) as [string, string, string, string]
  const errors = problemsOf({
    account_name: () => assertName('The account name', name),
    full_name: () => assertName('Your name', fullName),
    email: () => assertEmail(email),
    password: () => assertPassword(password),
  })
  if (Object.keys(errors).length > 0) return signUpPage(visit, 422, errors)
  try {
    // After validation: typing errors do not probe for emails in use.
    await visit.throttle('sign_up', visit.network)
    const passwordHash = await hashPassword(password)
    await signInAs(
      visit,
      await createAccount(visit, { name, fullName, email, passwordHash }),
      passwordHash,
    )
    return {
      to: '',
      notice: { kind: 'ok', text: `Welcome to Muster. You own the account ${name.trim()}.` },
    }
  } catch (error) {
    if (error instanceof TooOften) {
      visit.ctx.set('Retry-After', String(error.retryAfterSeconds))
      return signUpPage(visit, 429, {}, error.message)
    }
    // Does not tell whether the email has an account.
    if (error instanceof EmailTaken)
      return signUpPage(visit, 422, { email: ['This email cannot be used. Enter another one.'] })
    throw error
  }
}

interface NewOwner {
  name: string
  fullName: string
  email: string
  passwordHash: string
}

async function createAccount(
  { db, ip, now }: GuestVisit,
  { name, fullName, email, passwordHash }: NewOwner,
): Promise<User> {
  return transaction(db, async (trx) => {
    const { accountId, userId } = await insertAccount(
      trx,
      { name, fullName, email, passwordHash },
      now,
    )
    const scope = writeScope(trx, accountId)
    const user = await findUser(scope, userId)
    if (!user) throw new Error('The new owner is missing after the insert')
    const target = { type: 'account', id: accountId, name: name.trim() } as const
    await insertAuditEntry(scope, { user, action: 'account.created', target, ip }, now)
    return user
  })
}
