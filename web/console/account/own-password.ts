/** Password fields, and the check of the user's own password. */
import { MIN_LENGTH, verifyPassword } from '../../../auth/password.ts'
import { TooOften } from '../../../auth/rate-limit.ts'
import { findPasswordHash } from '../../../records/passwords.ts'
import { type Html, html } from '../../shared/html.ts'
import type { Visit } from '../page.ts'

export const PASSWORD_HINT = `At least ${MIN_LENGTH} characters. Several words make a good password.`

/** Returns the error to show, or undefined when `password` is the user's.
 *  Sensitive changes need the password again, because a signed-in device may be unattended. */
export async function checkOwnPassword(
  { user, scope, throttle, resetThrottle }: Visit,
  password: string,
): Promise<string | undefined> {
  if (password === '') return 'Enter your current password.'
  try {
    await throttle('password', user.id)
  } catch (error) {
    if (error instanceof TooOften) return error.message
    throw error
  }
  if (!(await verifyPassword(await findPasswordHash(scope, user.id), password)))
    return 'This is not your current password.'
  await resetThrottle('password', user.id)
  return undefined
}

/** Tells password managers whose password a form changes. */
export function usernameField(email: string): Html {
  return html`<input type="text" name="username" value="${email}" autocomplete="username" hidden>`
}
