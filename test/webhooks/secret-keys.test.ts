/** The keys that encrypt signing secrets: the proof at the start, rotation, and unreadable
 *  secrets. */
import { describe, expect, test } from 'vitest'
import { findSecretKeyState } from '../../records/secret-keys.ts'
import { activateSecret, findSealedSecrets, prepareSecret } from '../../records/webhook-secrets.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import {
  abandonLostKey,
  checkRotated,
  reencryptSecrets,
  startRotation,
} from '../../webhooks/rotate-secret-key.ts'
import { findSealingKey, proveSecretKeys } from '../../webhooks/secret-keys.ts'
import {
  newSecret,
  openSecret,
  type SecretKeys,
  sealSecret,
  secretKeysOf,
} from '../../webhooks/transport/secret.ts'
import { startApp, until } from '../helpers.ts'
import { signatureOf } from '../receiver.ts'
import { newInstallation, newSubscriber, newTenant, type Tenant } from './harness.ts'

const NEW_KEY = 'another secret key, long enough for it'
const WEBHOOK = {
  url: 'http://127.0.0.1/',
  description: '',
  eventTypes: ['*'],
  createdBy: null,
}

async function secretWith(keys: SecretKeys, { scope }: Tenant, id: string): Promise<string> {
  return openSecret(keys, id, (await findSealedSecrets(scope, id))?.current ?? '')
}

/** Stores a signing secret that is encrypted with another key than the installation's. */
const makeUnreadable = (tenant: Tenant, id: string): Promise<void> =>
  replaceSecret(tenant, id, newSecret(), 'a key that nobody has any more, at all')

async function replaceSecret(
  { write }: Tenant,
  id: string,
  secret: string,
  key: string,
): Promise<void> {
  await write((scope) => prepareSecret(scope, id, sealSecret(key, id, secret), new Date()))
  await write((scope) => activateSecret(scope, id, new Date()))
}

describe('proveSecretKeys', () => {
  test('stores the first key, and refuses every other one', async () => {
    await using installation = await newInstallation()
    const { db, config } = installation
    const key = config.secretKeys.newest()
    await proveSecretKeys(db, config.secretKeys)
    await proveSecretKeys(db, config.secretKeys)
    await expect(proveSecretKeys(db, secretKeysOf(NEW_KEY))).rejects.toThrow(
      'SECRET_KEY is not the key that encrypted the signing secrets in the database. ' +
        'Set SECRET_KEY to the key that this installation used before.',
    )
    await proveSecretKeys(db, secretKeysOf(NEW_KEY, key))
    expect(JSON.stringify(await db.read('secret_keys'))).not.toContain(key)
  })

  test('refuses a key that does not fit the secrets when no key is stored', async () => {
    await using installation = await newInstallation()
    await (await newTenant(installation)).subscribe(WEBHOOK.url)
    await expect(proveSecretKeys(installation.db, secretKeysOf(NEW_KEY))).rejects.toThrow(
      'SECRET_KEY is not the key',
    )
    expect(await findSecretKeyState(installation.db.read)).toBeUndefined()
    await proveSecretKeys(installation.db, installation.config.secretKeys)
  })

  test('makes a node that does not know the newest key not ready', async () => {
    await using app = await startApp({ environment: { SECRET_KEY: NEW_KEY } })
    expect(JSON.parse((await app.call('GET', '/readyz')).text)).toEqual({ status: 'ready' })
    await startRotation(app.db, secretKeysOf('the newest secret key, also long enough', NEW_KEY))
    const response = await app.call('GET', '/readyz')
    expect([response.status, JSON.parse(response.text)]).toEqual([
      503,
      { status: 'not ready', reasons: ['secret_key'] },
    ])
  })
})

describe('the rotation of the secret key', () => {
  test('encrypts every secret with the new key, also after an interruption', async () => {
    await using installation = await newInstallation()
    const { db, config } = installation
    const old = config.secretKeys.newest()
    const [both, onlyNew] = [secretKeysOf(NEW_KEY, old), secretKeysOf(NEW_KEY)]
    const tenants = await Promise.all([1, 2, 3].map(() => newTenant(installation)))
    const webhooks: { tenant: Tenant; id: string; secret: string }[] = []
    for (const tenant of tenants)
      for (let count = 0; count < 40; count++) {
        const id = await tenant.subscribe(WEBHOOK.url)
        webhooks.push({ tenant, id, secret: await tenant.secretOf(id) })
      }

    await proveSecretKeys(db, both)
    expect(await checkRotated(db, both)).toBe(false)
    const [tenant] = tenants as [Tenant]
    expect(await tenant.write((scope) => findSealingKey(scope, both))).toBe(old)
    await startRotation(db, both)
    expect(await tenant.write((scope) => findSealingKey(scope, both))).toBe(NEW_KEY)
    await expect(proveSecretKeys(db, onlyNew)).rejects.toThrow(
      'The rotation of SECRET_KEY has not finished',
    )
    await expect(proveSecretKeys(db, config.secretKeys)).rejects.toThrow(
      'Set SECRET_KEY to the newer key, and SECRET_KEY_PREVIOUS to this one.',
    )

    const interrupt = (): void => {
      throw new Error('interrupted')
    }
    await expect(reencryptSecrets(db, both, interrupt)).rejects.toThrow('interrupted')
    expect(await checkRotated(db, both)).toBe(false)
    const progress: number[][] = []
    const result = await reencryptSecrets(db, both, (...step) => progress.push(step))
    expect(result).toEqual({ webhooks: 120, unreadable: [] })
    expect(progress).toEqual([
      [100, 120],
      [120, 120],
    ])
    expect(await checkRotated(db, both)).toBe(true)
    await proveSecretKeys(db, onlyNew)
    for (const webhook of webhooks)
      expect(await secretWith(onlyNew, webhook.tenant, webhook.id)).toBe(webhook.secret)
    await expect(proveSecretKeys(db, config.secretKeys)).rejects.toThrow('SECRET_KEY is not')
  })

  test('waits for a webhook that is being created with the old key, and encrypts it, too', async () => {
    await using installation = await newInstallation()
    const { db, config } = installation
    const both = secretKeysOf(NEW_KEY, config.secretKeys.newest())
    const tenant = await newTenant(installation)
    const secret = newSecret()
    const sealing = Promise.withResolvers<void>()
    const rotation = sealing.promise.then(async () => {
      await startRotation(db, both)
      return reencryptSecrets(db, both, () => undefined)
    })
    const { id } = await tenant.write(async (scope) => {
      const key = await findSealingKey(scope, config.secretKeys)
      sealing.resolve()
      // Long enough for a rotation that did not wait.
      await new Promise((resolve) => setTimeout(resolve, 300))
      return insertWebhook(
        scope,
        WEBHOOK,
        (webhookId) => sealSecret(key, webhookId, secret),
        new Date(),
      )
    })
    expect(await rotation).toEqual({ webhooks: 1, unreadable: [] })
    expect(await secretWith(secretKeysOf(NEW_KEY), tenant, id)).toBe(secret)
  })

  test('names the webhooks whose secrets no key can read', async () => {
    await using installation = await newInstallation()
    const tenant = await newTenant(installation)
    const [readable, unreadable] = [
      await tenant.subscribe(WEBHOOK.url),
      await tenant.subscribe(WEBHOOK.url),
    ]
    const secret = await tenant.secretOf(readable)
    const sealedUrl = sealSecret(installation.config.secretKeys.newest(), readable, WEBHOOK.url)
    const row = installation.db.write('webhooks').where({ id: readable })
    await row.clone().update({ url_encrypted: sealedUrl })
    await makeUnreadable(tenant, unreadable)
    const both = secretKeysOf(NEW_KEY, installation.config.secretKeys.newest())
    await startRotation(installation.db, both)
    const result = await reencryptSecrets(installation.db, both, () => undefined)
    expect(result).toEqual({ webhooks: 1, unreadable: [unreadable] })
    expect(await secretWith(secretKeysOf(NEW_KEY), tenant, readable)).toBe(secret)
    const { url_encrypted } = await row.first()
    expect(openSecret(secretKeysOf(NEW_KEY), readable, url_encrypted)).toBe(WEBHOOK.url)
  })
})

test('abandonLostKey: only a key that does not fit the database can be given up', async () => {
  await using installation = await newInstallation()
  const { db, config } = installation
  await proveSecretKeys(db, config.secretKeys)
  await expect(abandonLostKey(db, config.secretKeys)).rejects.toThrow(
    'SECRET_KEY fits the database. No key is lost.',
  )
  await abandonLostKey(db, secretKeysOf(NEW_KEY))
  await proveSecretKeys(db, secretKeysOf(NEW_KEY))
})

test('an unreadable secret pauses the deliveries without an attempt, until it is rotated', async () => {
  await using installation = await newInstallation()
  await using subscriber = await newSubscriber(installation)
  await using other = await newSubscriber(installation)
  const { tenant, receiver, webhookId } = subscriber
  await makeUnreadable(tenant, webhookId)
  const engine = await installation.start()
  await tenant.emit(20)
  await until('the webhook is paused', () => engine.stats().pausedWebhooks === 1)
  await other.tenant.settled((await other.tenant.emitOne()).id)

  for (const delivery of await tenant.deliveries())
    expect(delivery).toMatchObject({ state: 'pending', attempts: 0 })
  expect(receiver.requests).toHaveLength(0)
  const secret = newSecret()
  await replaceSecret(tenant, webhookId, secret, installation.config.secretKeys.newest())
  for (const { id } of await tenant.deliveries())
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 1 })
  expect(engine.stats().pausedWebhooks).toBe(0)
  for (const { body, headers } of receiver.requests)
    expect(headers['x-service-signature']).toBe(signatureOf(secret, body))
})
