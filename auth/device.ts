/** Device cookies: a user's known devices can still sign in while failed sign-ins from other devices are
 *  blocked. See OWASP, "Slow Down Online Guessing Attacks with Device Cookies". */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** The value of the device cookie. It does not sign the user in. */
export function deviceCookieValue(secretKey: string, userId: string): string {
  return createHmac('sha256', secretKey).update(`a device of ${userId}`).digest('base64url')
}

export function isKnownDevice(
  secretKey: string,
  userId: string,
  mark: string | undefined,
): boolean {
  const expected = Buffer.from(deviceCookieValue(secretKey, userId))
  const actual = Buffer.from(mark ?? '')
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
