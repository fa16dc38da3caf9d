/** Passwords in forms. */
import { MIN_LENGTH, verifyPassword } from '../../../auth/password.ts'
import { TooOften } from '../../../auth/rate-limit.ts'
import { findPasswordHash } from '../../../records/users.ts'
import { type Html, html } from '../../shared/html.ts'
import type { Visit } from '../page.ts'

export const PASSWORD_HINT = `At least ${MIN_LENGTH} characters. A few words in a row are good.`

/** What to say when `given` is not the password of the user, who is asked for it again before what must not be done by whoever finds a device
 *  unlocked. Undefined: it is. */
export async function wrongPassword(
  { user, scope, throttle, resetThrottle }: Visit,
  given: string,
): Promise<string | undefined> {
  if (given === '') return 'Give your present password.'
  try {
    await throttle('password', user.id)
  } catch (error) {
    if (error instanceof TooOften) return error.message
    throw error
  }
  if (!(await verifyPassword(await findPasswordHash(scope, user.id), given)))
    return 'This is not your present password.'
  await resetThrottle('password', user.id)
  return undefined
}

/** Whose password a form is about, for the browser's store of passwords. */
export function usernameOf(email: string): Html {
  return html`<input type="text" name="username" value="${email}" autocomplete="username" hidden>`
}
