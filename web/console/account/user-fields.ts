/** Fields for a user's name, email and password. */
import { MIN_PASSWORD_LENGTH, verifyPassword, whileQueueHasRoom } from '../../../auth/password.ts'
import { findPasswordHash } from '../../../records/passwords.ts'
import { type Html, html } from '../../shared/html.ts'
import { type Errors, type FieldOptions, passwordField, textField } from '../form-fields.ts'
import type { Visit } from '../page.ts'

export function nameField(options: FieldOptions): Html {
  return textField({ ...options, autocomplete: 'name', maxLength: 200 })
}

export function emailField(options: FieldOptions & { autocomplete?: 'email' | 'username' }): Html {
  return textField({ ...options, type: 'email', maxLength: 254 })
}

export function newPasswordField(options: FieldOptions): Html {
  const hint = `At least ${MIN_PASSWORD_LENGTH} characters. Several words make a good password.`
  return passwordField({ ...options, hint, autocomplete: 'new-password' })
}

/** Tells password managers whose password a form changes. */
export function usernameField(email: string): Html {
  return html`<input type="text" name="username" value="${email}" autocomplete="username" hidden>`
}

/** Does not say why: it must not tell whether another account has a user with the email. */
export const UNUSABLE_EMAIL: Errors = { email: ['This email cannot be used. Enter another one.'] }

/** Returns the error to show, or undefined when the field `name` holds the user's password.
 *  Sensitive changes need the password again, because a signed-in device may be unattended. */
export async function checkOwnPassword(visit: Visit, name: string): Promise<Errors | undefined> {
  const password = visit.form.get(name) ?? ''
  if (password === '') return { [name]: ['Enter your current password.'] }
  const problem = await whileQueueHasRoom(() => findPasswordProblem(visit, password))
  return problem === undefined ? undefined : { [name]: [problem] }
}

async function findPasswordProblem(
  { user, scope, throttles }: Visit,
  password: string,
): Promise<string | undefined> {
  const tooOften = await throttles.consume('password', user.id)
  if (tooOften) return tooOften.message
  if (!(await verifyPassword(await findPasswordHash(scope, user.id), password)))
    return 'This is not your current password.'
  await throttles.reset('password', user.id)
  return undefined
}
