/** Devices on which somebody has signed in before: whoever guesses passwords from elsewhere must not keep their owner out.
 *  OWASP, "Slow Down Online Guessing Attacks with Device Cookies". */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** For a cookie: says that this user has signed in here, and lets nobody in by itself. */
export function deviceMark(secretKey: string, userId: string): string {
  return createHmac('sha256', secretKey).update(`a device of ${userId}`).digest('base64url')
}

export function isDeviceOf(secretKey: string, userId: string, mark: string | undefined): boolean {
  const expected = Buffer.from(deviceMark(secretKey, userId))
  const given = Buffer.from(mark ?? '')
  return given.length === expected.length && timingSafeEqual(given, expected)
}
