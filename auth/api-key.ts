import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  type AccessLevel,
  findPrincipal,
  insertApiKey,
  type Principal,
} from '../records/api-keys.ts'
import type { Scope } from '../records/database/scope.ts'
import type { Sql } from '../records/database/statements.ts'
import { coalesce } from './coalesce.ts'

export type { Principal }

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SHAPE = /^mst_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/
const CHECKSUM_LENGTH = 6
/** How much of a token is kept for people to recognise it by. */
const PREFIX_LENGTH = 8

function base62(value: bigint, length: number): string {
  let digits = ''
  for (let rest = value; rest > 0n; rest /= 62n) digits = DIGITS.charAt(Number(rest % 62n)) + digits
  return digits.padStart(length, '0')
}

const checksum = (body: string): string => base62(BigInt(crc32(body)), CHECKSUM_LENGTH)

/** A token of 256 random bits: `mst_<43 base62>_<6 base62 of the CRC-32 of what stands before the second underscore>`. */
export function newApiKey(): { token: string; hash: string; prefix: string } {
  const body = `mst_${base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)}`
  const token = `${body}_${checksum(body)}`
  return { token, hash: hashToken(token), prefix: token.slice(0, PREFIX_LENGTH) }
}

/** Tells a mistyped or truncated token, and anything that is none, without asking the database. */
export function isWellFormed(token: string): boolean {
  return (
    SHAPE.test(token) &&
    checksum(token.slice(0, -CHECKSUM_LENGTH - 1)) === token.slice(-CHECKSUM_LENGTH)
  )
}

/** Lower-case hexadecimal SHA-256. No salt and no stretching: the token has 256 bits of its own. */
export function hashToken(token: string): string {
  return hash('sha256', token)
}

export type Authenticate = (token: string) => Promise<Principal | undefined>

/** Tells whose token it is: undefined when it is malformed, unknown or revoked, or its owner is deactivated. */
export function authenticator(sql: Sql): Authenticate {
  const find = coalesce((tokenHash) => findPrincipal(sql, tokenHash))
  return async (token) => (isWellFormed(token) ? (await find(hashToken(token))).result : undefined)
}

/** Makes a key of a user. The token is in the answer and nowhere else: only its hash is stored. */
export async function issueApiKey(
  scope: Scope,
  key: { userId: string; name: string; accessLevel: AccessLevel },
  now: Date,
): Promise<{ id: string; token: string }> {
  const { token, hash, prefix } = newApiKey()
  const id = await insertApiKey(scope, { ...key, tokenHash: hash, tokenPrefix: prefix }, now)
  return { id, token }
}
