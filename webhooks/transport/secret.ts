/** Signing secrets: made, and sealed for storage. They are never logged. */
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

/** The stored secret cannot be read: it was sealed under another key or for another webhook, or it was changed. */
export class SecretUnreadable extends Error {
  override name = 'SecretUnreadable'
}

/** `whsec_` and 32 random bytes in base64 (Standard Webhooks 1.0.0, "Symmetric"). */
export function newSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/** What a secret signs with. Made once for many signatures: to take in a key costs several times what a signature does. */
export interface SigningKeys {
  /** The whole secret, as it is written. */
  whole: KeyObject
  /** The bytes that it stands for. */
  decoded: KeyObject
}

export function signingKeys(secret: string): SigningKeys {
  return {
    whole: createSecretKey(secret, 'utf8'),
    decoded: createSecretKey(secret.slice(PREFIX.length), 'base64'),
  }
}

/** Encrypts a secret under the installation's key: `v1.` and base64url of nonce, tag and ciphertext. Bound to the webhook's id, so that a
 *  sealed secret copied to another row does not open there. */
export function sealSecret(secretKey: string, webhookId: string, secret: string): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', keyFor(secretKey), iv, {
    authTagLength: TAG_BYTES,
  }).setAAD(Buffer.from(webhookId))
  const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return `${VERSION}.${Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')}`
}

/** The secret that `sealSecret` was given. Throws `SecretUnreadable`. */
export function openSecret(secretKey: string, webhookId: string, sealed: string): string {
  const [version, text] = sealed.split('.')
  if (version !== VERSION || text === undefined)
    throw new SecretUnreadable('The sealed secret has an unknown format')
  const bytes = Buffer.from(text, 'base64url')
  try {
    const iv = bytes.subarray(0, IV_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', keyFor(secretKey), iv, {
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

const KEPT_SECRETS = 1_000

export type SecretOpener = (webhookId: string, sealed: string) => SigningKeys

/** An `openSecret` that remembers what it opened. Keyed by webhook and ciphertext, so a changed secret is never an old one. */
export function secretOpener(secretKey: string): SecretOpener {
  const opened = new Map<string, SigningKeys>()
  return (webhookId, sealed) => {
    const id = `${webhookId} ${sealed}`
    const known = opened.get(id)
    if (known) return known
    const keys = signingKeys(openSecret(secretKey, webhookId, sealed))
    if (opened.size >= KEPT_SECRETS) opened.clear()
    opened.set(id, keys)
    return keys
  }
}

const keys = new Map<string, Buffer>()

function keyFor(secretKey: string): Buffer {
  const known = keys.get(secretKey)
  if (known) return known
  const key = Buffer.from(hkdfSync('sha256', secretKey, '', 'muster webhook secrets', 32))
  keys.set(secretKey, key)
  return key
}
