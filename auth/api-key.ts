import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  type AccessLevel,
  findPrincipal,
  insertApiKey,
  type KeyStatus,
  type Principal,
} from '../records/api-keys.ts'
import type { WriteScope } from '../records/database/scope.ts'
import type { Sql } from '../records/database/statements.ts'
import { coalesce } from './coalesce.ts'

export type { Principal }

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SHAPE = /^mst_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/
const CHECKSUM_LENGTH = 6
/** The length of the prefix that is stored so that people can recognise a key. */
const PREFIX_LENGTH = 8

function base62(value: bigint, length: number): string {
  let digits = ''
  for (let rest = value; rest > 0n; rest /= 62n) digits = DIGITS.charAt(Number(rest % 62n)) + digits
  return digits.padStart(length, '0')
}

const checksum = (body: string): string => base62(BigInt(crc32(body)), CHECKSUM_LENGTH)

/** 256 random bits: `mst_<43 base62>_<checksum>`. The checksum is the CRC-32 of `mst_<43 base62>`,
 *  as 6 base62 digits. */
export function newApiKey(): { token: string; hash: string; prefix: string } {
  const body = `mst_${base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)}`
  const token = `${body}_${checksum(body)}`
  return { token, hash: hashToken(token), prefix: token.slice(0, PREFIX_LENGTH) }
}

/** Recognises mistyped and truncated tokens without a query. */
export function isWellFormed(token: string): boolean {
  return (
    SHAPE.test(token) &&
    checksum(token.slice(0, -CHECKSUM_LENGTH - 1)) === token.slice(-CHECKSUM_LENGTH)
  )
}

/** Lower-case hexadecimal SHA-256. The token has 256 random bits, so it needs no salt and no
 *  stretching. */
export function hashToken(token: string): string {
  return hash('sha256', token)
}

export type Authenticate = (token: string) => Promise<KeyStatus | undefined>

/** Returns a function that finds the status and the owner of a key by its token. It returns
 *  undefined when the token is malformed or unknown. */
export function authenticator(sql: Sql): Authenticate {
  const find = coalesce((tokenHash) => findPrincipal(sql, tokenHash))
  return async (token) => (isWellFormed(token) ? (await find(hashToken(token))).result : undefined)
}

/** Creates an API key of a user. Only the hash of the token is stored. */
export async function issueApiKey(
  scope: WriteScope,
  key: { userId: string; name: string; accessLevel: AccessLevel },
  now: Date,
): Promise<{ id: string; token: string }> {
  const { token, hash, prefix } = newApiKey()
  const id = await insertApiKey(scope, { ...key, tokenHash: hash, tokenPrefix: prefix }, now)
  return { id, token }
}
