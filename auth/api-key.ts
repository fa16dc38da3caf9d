import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { type AccessLevel, insertApiKey } from '../records/api-keys.ts'
import type { WriteScope } from '../records/database/scope.ts'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const TOKEN_FORM = /^mst_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/
const CHECKSUM_LENGTH = 6
/** How many characters of a token are stored, so that people can recognise the key. */
const PREFIX_LENGTH = 8

/** Creates a token of 256 random bits: `mst_<43 base62>_<checksum>`. The checksum is the CRC-32 of
 *  `mst_<43 base62>`, as 6 base62 digits. */
export function newApiKey(): { token: string; tokenHash: string; tokenPrefix: string } {
  const body = `mst_${base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)}`
  const token = `${body}_${checksum(body)}`
  return { token, tokenHash: hashApiKey(token), tokenPrefix: token.slice(0, PREFIX_LENGTH) }
}

/** False for a token that was mistyped or cut off: its form or its checksum is wrong. Needs no
 *  query. */
export function isWellFormed(token: string): boolean {
  return (
    TOKEN_FORM.test(token) &&
    checksum(token.slice(0, -CHECKSUM_LENGTH - 1)) === token.slice(-CHECKSUM_LENGTH)
  )
}

/** Lower-case hexadecimal SHA-256. The token has 256 random bits, so the hash needs no salt and no
 *  stretching. */
export function hashApiKey(token: string): string {
  return hash('sha256', token)
}

/** Creates an API key of a user. Stores the hash and the prefix of the token, not the token. */
export async function issueApiKey(
  scope: WriteScope,
  key: { userId: string; name: string; accessLevel: AccessLevel },
  now: Date,
): Promise<{ id: string; token: string }> {
  const { token, ...stored } = newApiKey()
  return { id: await insertApiKey(scope, { ...key, ...stored }, now), token }
}

function checksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_LENGTH)
}

function base62(value: bigint, length: number): string {
  let digits = ''
  for (let rest = value; rest > 0n; rest /= 62n) digits = DIGITS.charAt(Number(rest % 62n)) + digits
  return digits.padStart(length, '0')
}
