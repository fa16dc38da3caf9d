/** Signing secrets: created, and encrypted for storage. They are never logged. */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32
const VERSION = 'v1'
const IV_BYTES = 12
const TAG_BYTES = 16

/** The stored secret was encrypted with another key or for another webhook, or was changed. */
export class SecretUnreadable extends Error {
  override name = 'SecretUnreadable'
}

/** The keys that encrypt signing secrets at rest. */
export interface SecretKeys {
  /** SECRET_KEY, or the key in the key file. Throws `Refused` when there is none. */
  newest(): string
  /** SECRET_KEY_PREVIOUS, or the key in `secret.key.previous`: the key before the newest.
   *  Undefined: there is none. */
  previous(): string | undefined
  /** Reads the key files again: another process may have replaced the key. */
  reload(): void
  /** The place of the newest key, for messages: `SECRET_KEY` or a file. */
  place: string
}

/** Keys that come from settings, not from files. */
export function secretKeysOf(newest: string, previous?: string): SecretKeys {
  return {
    newest: () => newest,
    previous: () => previous,
    reload: () => undefined,
    place: 'SECRET_KEY',
  }
}

/** `whsec_` and 32 random bytes in base64 (Standard Webhooks 1.0.0, "Symmetric"). */
export function newSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/** A signing secret as HMAC keys. Created once for many signatures: importing a key costs several
 *  times as much as signing. */
export interface SigningKeys {
  /** The whole secret as text, with its prefix. */
  whole: KeyObject
  /** The decoded bytes. */
  decoded: KeyObject
}

export function signingKeys(secret: string): SigningKeys {
  return {
    whole: createSecretKey(secret, 'utf8'),
    decoded: createSecretKey(secret.slice(PREFIX.length), 'base64'),
  }
}

/** Encrypts a secret with the key of the installation: `v1.` and base64url of nonce, tag and
 *  ciphertext. The webhook ID is authenticated: a sealed secret that is copied to another row
 *  cannot be opened there. */
export function sealSecret(secretKey: string, webhookId: string, secret: string): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', deriveKey(secretKey), iv, {
    authTagLength: TAG_BYTES,
  }).setAAD(Buffer.from(webhookId))
  const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return `${VERSION}.${Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')}`
}

/** Module state: secrets are read in many places, and metrics count the failures of the whole
 *  process. */
let readErrors = 0

/** How often this process could not read a secret. */
export function countReadErrors(): number {
  return readErrors
}

/** Decrypts the result of `sealSecret` with whichever key fits. Throws `SecretUnreadable`. */
export function openSecret(keys: SecretKeys, webhookId: string, sealed: string): string {
  const secret = openWithAny(keys, webhookId, sealed)
  if (secret !== undefined) return secret
  keys.reload()
  const reloaded = openWithAny(keys, webhookId, sealed)
  if (reloaded !== undefined) return reloaded
  readErrors++
  throw new SecretUnreadable('No key fits the sealed secret')
}

function openWithAny(keys: SecretKeys, webhookId: string, sealed: string): string | undefined {
  for (const key of listKeys(keys)) {
    const secret = openWithKey(key, webhookId, sealed)
    if (secret !== undefined) return secret
  }
  return undefined
}

/** The newest key first. */
export function listKeys(keys: SecretKeys): string[] {
  return [keys.newest(), keys.previous()].filter((key) => key !== undefined)
}

/** Undefined: the secret was sealed with another key or for another webhook, or was changed. */
export function openWithKey(
  secretKey: string,
  webhookId: string,
  sealed: string,
): string | undefined {
  const [version, text] = sealed.split('.')
  if (version !== VERSION || text === undefined) return undefined
  const bytes = Buffer.from(text, 'base64url')
  try {
    const iv = bytes.subarray(0, IV_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', deriveKey(secretKey), iv, {
      authTagLength: TAG_BYTES,
    })
      .setAAD(Buffer.from(webhookId))
      .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
    const secret = [decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]
    return Buffer.concat(secret).toString('utf8')
  } catch {
    return undefined
  }
}

const MAX_CACHED_SECRETS = 1_000

/** Throws `SecretUnreadable`. */
export type SecretOpener = (webhookId: string, sealed: string) => SigningKeys

/** `openSecret` with a cache by webhook and ciphertext: after a rotation, the old signing secret is
 *  never returned. */
export function secretOpener(secretKeys: SecretKeys): SecretOpener {
  const opened = new Map<string, SigningKeys>()
  return (webhookId, sealed) => {
    const id = `${webhookId} ${sealed}`
    const cached = opened.get(id)
    if (cached) return cached
    const keys = signingKeys(openSecret(secretKeys, webhookId, sealed))
    if (opened.size >= MAX_CACHED_SECRETS) opened.clear()
    opened.set(id, keys)
    return keys
  }
}

const KEY_BYTES = 32
const CHECK_BYTES = 16

/** Module state: caches of pure functions, for the few keys of a process. */
const derivedKeys = new Map<string, Buffer>()
const checkValues = new Map<string, string>()

function deriveKey(secretKey: string): Buffer {
  const cached = derivedKeys.get(secretKey)
  if (cached) return cached
  const key = derive(secretKey, 'muster webhook secrets', KEY_BYTES)
  derivedKeys.set(secretKey, key)
  return key
}

/** A value that identifies a secret key. The database stores it, so that each start can prove that
 *  the process has the same key. HKDF cannot be reversed, and values for different purposes are
 *  independent: the check value reveals neither the secret key nor the key that `deriveKey` derives
 *  from it. */
export function checkValueOf(secretKey: string): string {
  const cached = checkValues.get(secretKey)
  if (cached !== undefined) return cached
  const value = derive(secretKey, 'muster secret key check', CHECK_BYTES).toString('hex')
  checkValues.set(secretKey, value)
  return value
}

/** RFC 5869. `purpose` is its `info`. */
function derive(secretKey: string, purpose: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secretKey, '', purpose, bytes))
}
