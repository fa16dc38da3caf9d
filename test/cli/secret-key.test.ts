import { createHmac } from 'node:crypto'
import { cp, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { readConfig } from '../../server/config.ts'
import { proveSecretKeys } from '../../webhooks/secret-keys.ts'
import { openSecret } from '../../webhooks/transport/secret.ts'
import { startReceiver } from '../receiver.ts'
import { type Muster, newAccount, newMuster, SECRET_KEY } from './muster.ts'
import { SERVE_ENVIRONMENT, startServing } from './serving.ts'

const KILL_AT = fileURLToPath(new URL('kill-at.ts', import.meta.url))
const ALLOW = { WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8' }

interface NewWebhook {
  id: string
  secret: string
}

async function newWebhook(muster: Muster, url = 'http://127.0.0.1/'): Promise<NewWebhook> {
  const { account_id } = await newAccount(muster)
  const args = ['webhook', 'create', '--account', account_id, '--url', url, '--events', '*']
  return muster.json(args, { environment: ALLOW })
}

const keyFile = ({ dataDir }: Muster, name = 'secret.key'): string => join(dataDir, name)
const readKey = async (muster: Muster, name?: string): Promise<string> =>
  (await readFile(keyFile(muster, name), 'utf8')).trim()

/** The signing secret as the next start reads it. Throws if the next start would be refused. */
async function secretAtStart({ dataDir }: Muster, webhookId: string): Promise<string> {
  const { secretKeys } = readConfig({ DATA_DIR: dataDir })
  const db = openDatabase({ dataDir })
  try {
    await proveSecretKeys(db, secretKeys)
    const row = await db.read('webhooks').where({ id: webhookId }).first('secret_encrypted')
    return openSecret(secretKeys, webhookId, row.secret_encrypted)
  } finally {
    await db.close()
  }
}

describe('secret-key rotate', { timeout: 240_000 }, () => {
  it('replaces the key file beside a running service, which keeps signing with the same secret', async () => {
    await using muster = await newMuster()
    await using receiver = await startReceiver()
    const { id, secret } = await newWebhook(muster, receiver.url)
    const server = await startServing(muster, { environment: ALLOW })
    const before = await readKey(muster)
    await muster.json(['webhook', 'test', id])
    const { status, stdout } = await muster.run(['secret-key', 'rotate'])
    expect(stdout).toBe(
      'Encrypted the secrets of 1 of 1 webhooks.\n' +
        'The new key encrypts the signing secrets of 1 webhooks.\n' +
        'Back up DATA_DIR/secret.key. Keep DATA_DIR/secret.key.previous for as long as you keep older backups.\n',
    )
    expect(status).toBe(0)
    expect(await readKey(muster, 'secret.key.previous')).toBe(before)
    expect(await readKey(muster)).not.toBe(before)
    await rm(keyFile(muster, 'secret.key.previous'))
    await muster.json(['webhook', 'test', id])
    for (const { body, headers } of await receiver.received(2))
      expect(headers['x-service-signature']).toBe(
        createHmac('sha256', secret).update(body).digest('hex'),
      )
    expect(await secretAtStart(muster, id)).toBe(secret)
    server.process.kill('SIGINT')
    expect((await server.ended).status).toBe(0)
  })

  it('can be killed before any step without losing the signing secret', async () => {
    await using muster = await newMuster()
    const { id, secret } = await newWebhook(muster)
    let killAt = 1
    for (let status: number | null = null; status === null; killAt++) {
      await using copy = await newMuster()
      await cp(muster.dataDir, copy.dataDir, { recursive: true })
      const environment = { NODE_OPTIONS: `--import=${KILL_AT}`, KILL_AT: String(killAt) }
      ;({ status } = await copy.run(['secret-key', 'rotate'], { environment }))
      expect(await secretAtStart(copy, id)).toBe(secret)
    }
    // Two key files with three steps each, and the commits.
    expect(killAt).toBeGreaterThan(10)
  })

  it('continues an interrupted rotation with the new key that it has written', async () => {
    await using muster = await newMuster()
    const { id, secret } = await newWebhook(muster)
    // Step 10 comes after the new key is written, and before the rotation has finished.
    const environment = { NODE_OPTIONS: `--import=${KILL_AT}`, KILL_AT: '10' }
    expect((await muster.run(['secret-key', 'rotate'], { environment })).status).toBeNull()
    const key = await readKey(muster)
    expect(await muster.json(['secret-key', 'rotate'])).toEqual({ webhooks: 1, unreadable: [] })
    expect(await readKey(muster)).toBe(key)
    await rm(keyFile(muster, 'secret.key.previous'))
    expect(await secretAtStart(muster, id)).toBe(secret)
  })

  it('needs a new key in SECRET_KEY and the old one in SECRET_KEY_PREVIOUS, if they are used', async () => {
    await using muster = await newMuster()
    await newWebhook(muster)
    const old = await readKey(muster)
    const rotate = (environment: Record<string, string>) =>
      muster.run(['secret-key', 'rotate'], { environment })
    const next = 'the next secret key of this test, long enough'
    expect(await rotate({ SECRET_KEY: old })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('SECRET_KEY encrypts all signing secrets already.'),
    })
    expect(await rotate({ SECRET_KEY: next })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('SECRET_KEY is not the key that encrypted'),
    })
    expect(await rotate({ SECRET_KEY_PREVIOUS: old })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('SECRET_KEY_PREVIOUS needs SECRET_KEY'),
    })
    expect(await rotate({ SECRET_KEY: next, SECRET_KEY_PREVIOUS: old })).toMatchObject({
      status: 0,
      stderr: '',
    })
    expect((await rotate({ SECRET_KEY: next })).stderr).toContain('already')
  })
})

describe('a lost key', { timeout: 120_000 }, () => {
  const serve = (muster: Muster, environment: Record<string, string> = {}) =>
    muster.run(['serve'], { environment: { ...SERVE_ENVIRONMENT, ...environment } })

  it('makes serve refuse to start, with the remedy and without a new key', async () => {
    await using muster = await newMuster()
    const { id, secret } = await newWebhook(muster)
    const backup = keyFile(muster, 'backup.key')
    await rename(keyFile(muster), backup)
    expect(await serve(muster)).toMatchObject({
      status: 1,
      stdout: '',
      stderr:
        'DATA_DIR/secret.key is missing. The signing secrets in the database are encrypted with this key. ' +
        'Restore the file from your backup, or set SECRET_KEY to the key. ' +
        'If the key is lost, see "muster secret-key reset --help".\n',
    })
    await expect(readKey(muster)).rejects.toThrow('ENOENT')
    expect(await serve(muster, { SECRET_KEY })).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /^SECRET_KEY is not the key that encrypted the signing secrets.*\n$/,
      ),
    })
    await rename(backup, keyFile(muster))
    expect(await secretAtStart(muster, id)).toBe(secret)
  })

  it('does not prevent a backup', async () => {
    await using muster = await newMuster()
    await newWebhook(muster)
    await rm(keyFile(muster))
    const file = join(muster.dataDir, 'backup.sqlite')
    expect((await muster.run(['backup', file])).status).toBe(0)
  })

  it('can be reset: the service starts, and delivers to a webhook after its secret is rotated', async () => {
    await using muster = await newMuster()
    await using receiver = await startReceiver()
    const { id } = await newWebhook(muster, receiver.url)
    await rm(keyFile(muster))
    expect(await muster.run(['secret-key', 'reset'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('If it is lost, add --confirm.'),
    })
    expect(await muster.json(['secret-key', 'reset', '--confirm'])).toEqual({ reset: true })
    expect((await muster.run(['secret-key', 'reset', '--confirm'])).stderr).toBe(
      'DATA_DIR/secret.key fits the database. No key is lost.\n',
    )
    const server = await startServing(muster, { environment: ALLOW })
    await muster.json(['webhook', 'test', id])
    const { next_secret: secret } = await muster.json(['webhook', 'rotate', id])
    await muster.json(['webhook', 'rotate', id, '--activate'])
    await receiver.received(1)
    expect(await secretAtStart(muster, id)).toBe(secret)
    server.process.kill('SIGINT')
    await server.ended
  })
})
