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

/** `whsec_` and 32 random bytes in base64 (Standard Webhooks 1.0.0, "Symmetric"). */
export function newSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/** The keys of a secret. Created once for many signatures: importing a key costs several times as
 *  much as signing. */
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

/** Decrypts the result of `sealSecret`. Throws `SecretUnreadable`. */
export function openSecret(secretKey: string, webhookId: string, sealed: string): string {
  const [version, text] = sealed.split('.')
  if (version !== VERSION || text === undefined)
    throw new SecretUnreadable('The sealed secret has an unknown format')
  const bytes = Buffer.from(text, 'base64url')
  try {
    const iv = bytes.subarray(0, IV_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', deriveKey(secretKey), iv, {
      authTagLength: TAG_BYTES,
    })
      .setAAD(Buffer.from(webhookId))
      .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
    return Buffer.concat([
      decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)),
      decipher.final(),
    ]).toString('utf8')
  } catch (cause) {
    throw new SecretUnreadable('The sealed secret cannot be read', { cause })
  }
}

const MAX_CACHED_SECRETS = 1_000

export type SecretOpener = (webhookId: string, sealed: string) => SigningKeys

/** `openSecret` with a cache. Its key is webhook and ciphertext, so a rotated secret never returns
 *  the old one. */
export function secretOpener(secretKey: string): SecretOpener {
  const opened = new Map<string, SigningKeys>()
  return (webhookId, sealed) => {
    const id = `${webhookId} ${sealed}`
    const known = opened.get(id)
    if (known) return known
    const keys = signingKeys(openSecret(secretKey, webhookId, sealed))
    if (opened.size >= MAX_CACHED_SECRETS) opened.clear()
    opened.set(id, keys)
    return keys
  }
}

/** Module state: a cache of a pure function, for the one or two keys of a process. */
const derivedKeys = new Map<string, Buffer>()

function deriveKey(secretKey: string): Buffer {
  const known = derivedKeys.get(secretKey)
  if (known) return known
  const key = Buffer.from(hkdfSync('sha256', secretKey, '', 'muster webhook secrets', 32))
  derivedKeys.set(secretKey, key)
  return key
}
