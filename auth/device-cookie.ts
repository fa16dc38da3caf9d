/** Device cookies: a user can still sign in on a known device when too many attempts have blocked
 *  unknown devices. See OWASP, "Slow Down Online Guessing Attacks with Device Cookies". */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** The value of the device cookie. It does not sign the user in. */
export function deviceCookieValue(secretKey: string, userId: string): string {
  return createHmac('sha256', secretKey).update(`a device of ${userId}`).digest('base64url')
}

/** Was the cookie created for this user, with any of `secretKeys`? `cookie` is undefined when the
 *  browser sent none. */
export function isKnownDevice(
  secretKeys: string[],
  userId: string,
  cookie: string | undefined,
): boolean {
  const actual = Buffer.from(cookie ?? '')
  return secretKeys.some((secretKey) => {
    const expected = Buffer.from(deviceCookieValue(secretKey, userId))
    return actual.length === expected.length && timingSafeEqual(actual, expected)
  })
}
