/** Devices on which a user has signed in before. Password guesses from other devices do not lock these out.
 *  OWASP, "Slow Down Online Guessing Attacks with Device Cookies". */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** The value of the device cookie. It does not sign the user in. */
export function deviceMark(secretKey: string, userId: string): string {
  return createHmac('sha256', secretKey).update(`a device of ${userId}`).digest('base64url')
}

export function isDeviceOf(secretKey: string, userId: string, mark: string | undefined): boolean {
  const expected = Buffer.from(deviceMark(secretKey, userId))
  const actual = Buffer.from(mark ?? '')
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
