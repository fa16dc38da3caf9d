/** Sessions of the console: a random token in a cookie, and its hash in a row. */
import { hash, randomBytes } from 'node:crypto'
import type { WriteScope } from '../records/database/scope.ts'
import { insertSession, type NewSession } from '../records/sessions.ts'

const TOKEN_BYTES = 32
const TOKEN_FORM = /^[A-Za-z0-9_-]{43}$/

/** The hash of a session's or an invitation's token, or undefined for malformed text. The token has
 *  256 random bits, so the hash needs no salt and no stretching. */
export function hashOfToken(token: string): string | undefined {
  return TOKEN_FORM.test(token) ? hash('sha256', token) : undefined
}

/** 256 random bits as base64url text, and the hash of this text. */
export function newToken(): { token: string; tokenHash: string } {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  return { token, tokenHash: hash('sha256', token) }
}

/** Signs a user in. Only the hash of the token is stored. */
export async function startSession(
  scope: WriteScope,
  session: Omit<NewSession, 'tokenHash'>,
  now: Date,
): Promise<{ id: string; token: string }> {
  const { token, tokenHash } = newToken()
  return { id: await insertSession(scope, { ...session, tokenHash }, now), token }
}

const BROWSERS: [RegExp, string][] = [
  [/\bEdg(e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/Chrom(e|ium)\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]
const SYSTEMS: [RegExp, string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac(intosh| OS X)\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

/** For example `Firefox on Linux`. The first match counts: the user agent of most browsers also
 *  names other browsers. */
export function describeDevice(userAgent: string): string {
  const find = (names: [RegExp, string][]): string | undefined =>
    names.find(([pattern]) => pattern.test(userAgent))?.[1]
  const browser = find(BROWSERS)
  const system = find(SYSTEMS)
  if (!browser && !system) return 'Unknown device'
  return `${browser ?? 'Unknown browser'}${system ? ` on ${system}` : ''}`
}
