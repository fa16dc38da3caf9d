/** The page that creates an account with its Account Owner. 404 unless SIGN_UP is on. */
import { assertPassword, hashPassword, whileQueueHasRoom } from '../../../auth/password.ts'
import { insertAccount, type NewAccount } from '../../../records/accounts.ts'
import { insertAuditEntry } from '../../../records/audit-log.ts'
import { writeScope } from '../../../records/database/scope.ts'
import { transaction } from '../../../records/database/transaction.ts'
import { parseName } from '../../../records/names.ts'
import { EmailTaken, findUser, parseEmail, type User } from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import {
  checkFields,
  type FormOutcome,
  form,
  hasErrors,
  textField,
  typedFields,
} from '../form-fields.ts'
import {
  type ConsolePage,
  type GuestVisit,
  guestGet,
  guestPost,
  type PageResult,
  type Route,
  redirect,
} from '../page.ts'
import { signInAs } from './sign-in.ts'
import { emailField, nameField, newPasswordField, UNUSABLE_EMAIL } from './user-fields.ts'

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
  { status = 200, problem, errors = {} }: FormOutcome = {},
): ConsolePage {
  const field = typedFields(input, errors)
  return {
    title: 'Create an account',
    lead: 'You own the account and can invite others later.',
    status,
    isNarrow: true,
    body: [
      form({ to: '/sign-up', submit: 'Create account', problem, errors }, [
        textField({
          ...field('account_name', 'Account name'),
          hint: 'Your company or team.',
          autocomplete: 'organization',
          maxLength: 200,
        }),
        nameField(field('full_name', 'Your name')),
        emailField({ ...field('email', 'Email'), autocomplete: 'username' }),
        newPasswordField({ name: 'password', label: 'Password', errors }),
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
  const name = value('account_name')
  const fullName = value('full_name')
  const email = value('email')
  const password = value('password')
  const errors = checkFields({
    account_name: () => parseName('The account name', name),
    full_name: () => parseName('Your name', fullName),
    email: () => parseEmail(email),
    password: () => assertPassword(password, [email, name, fullName]),
  })
  if (hasErrors(errors)) return signUpPage(visit, { status: 422, errors })
  return whileQueueHasRoom(() => createOwnAccount(visit, { name, fullName, email, password }))
}

async function createOwnAccount(
  visit: GuestVisit,
  { password, ...names }: Omit<NewAccount, 'passwordHash'> & { password: string },
): Promise<PageResult> {
  // The limit counts only valid forms. An invalid form does not tell whether an email is in use.
  const tooOften = await visit.throttles.consume('sign_up', visit.network)
  if (tooOften) {
    visit.ctx.set('Retry-After', String(tooOften.retryAfterSeconds))
    return signUpPage(visit, { status: 429, problem: tooOften.message })
  }
  const passwordHash = await hashPassword(password)
  try {
    const owner = await insertOwnedAccount(visit, { ...names, passwordHash })
    visit.ctx.state.hasChanged = true
    await signInAs(visit, owner, passwordHash)
  } catch (error) {
    if (error instanceof EmailTaken)
      return signUpPage(visit, { status: 422, errors: UNUSABLE_EMAIL })
    throw error
  }
  return redirect('', `Welcome to Muster. You own the account ${names.name.trim()}.`)
}

async function insertOwnedAccount({ db, ip, now }: GuestVisit, account: NewAccount): Promise<User> {
  return transaction(db, async (trx) => {
    const { accountId, userId } = await insertAccount(trx, account, now)
    const scope = writeScope(trx, accountId)
    const user = await findUser(scope, userId)
    if (!user) throw new Error('The new owner is missing after the insert')
    const target = { type: 'account', id: accountId, name: account.name.trim() } as const
    await insertAuditEntry(scope, { user, action: 'account.created', target, ip }, now)
    return user
  })
}
