import { v7 as uuidv7 } from 'uuid'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { insertDeliveries } from '../../records/deliveries.ts'
import { findSealedSecrets } from '../../records/webhook-secrets.ts'
import { readConfig } from '../../server/config.ts'
import { openSecret } from '../../webhooks/transport/secret.ts'
import { CLOCK_DIFFERENCE_MS } from '../helpers.ts'
import { type Muster, newAccount, newMuster } from './muster.ts'

const UNKNOWN = '0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'
const HOUR_MS = 3_600_000
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/
const ENDPOINT = 'https://example.com/webhooks'

interface NewWebhook {
  id: string
  secret: string
}

function createWebhook(
  muster: Muster,
  accountId: string,
  events = '*',
  ...options: string[]
): Promise<NewWebhook> {
  const webhook = ['--account', accountId, '--url', ENDPOINT, '--events', events]
  return muster.json(['webhook', 'create', ...webhook, ...options])
}

/** A webhook in a new account. */
async function newWebhook(muster: Muster): Promise<NewWebhook & { accountId: string }> {
  const { account_id: accountId } = await newAccount(muster)
  return { accountId, ...(await createWebhook(muster, accountId)) }
}

/** The current signing secret, as the service reads it. */
async function signingSecret(muster: Muster, accountId: string, id: string): Promise<string> {
  const { secretKeys } = readConfig({ DATA_DIR: muster.dataDir })
  const db = openDatabase({ dataDir: muster.dataDir })
  const sealed = await transaction(db, (trx) => findSealedSecrets(writeScope(trx, accountId), id))
  await db.close()
  return openSecret(secretKeys, id, sealed?.current ?? '')
}

/** Stores a delivery in a state. Unless it is pending, it has one attempt, which failed. */
async function newDelivery(
  muster: Muster,
  accountId: string,
  webhookId: string,
  state: 'pending' | 'retrying' | 'delivered' | 'failed',
): Promise<string> {
  const id = uuidv7()
  const db = openDatabase({ dataDir: muster.dataDir })
  const delivery = {
    id,
    webhookId,
    eventId: null,
    eventType: 'task.created',
    body: Buffer.from('{}'),
    trigger: 'schedule' as const,
  }
  await transaction(db, async (trx) => {
    await insertDeliveries(writeScope(trx, accountId), [delivery], new Date(0))
    if (state === 'pending') return
    const schedule =
      state === 'retrying'
        ? { next_attempt_at: Date.now() + HOUR_MS }
        : { next_attempt_at: null, next_trigger: null }
    await trx
      .sql('deliveries')
      .where({ id })
      .update({ state, attempts: 1, ...schedule })
    await trx.sql('attempts').insert({
      account_id: accountId,
      delivery_id: id,
      number: 1,
      trigger: 'schedule',
      started_at: 1_000,
      duration_ms: 12,
      outcome: 'http_error',
      status: 500,
      response_headers: '{"server":"x"}',
      response_body: 'oh',
      error: 'It said 500',
    })
  })
  await db.close()
  return id
}

describe('webhook create', () => {
  it('prints the ID and the secret, and stores the secret encrypted', async () => {
    await using muster = await newMuster()
    const { accountId, id, secret } = await newWebhook(muster)
    expect(secret).toMatch(SECRET)
    expect(await signingSecret(muster, accountId, id)).toBe(secret)
  })

  it.each<[url: string, events: string, message: RegExp]>([
    ['https://example.com', 'cat.fed', /option '--events <list>': "cat.fed"/],
    ['https://example.com', 'webhook.test', /"webhook.test"/],
    ['ftp://a', 'cat.fed', /"cat.fed" is not an event type\..*\nThe URL must begin with https/],
  ])('to %s for %s: exits with 2 and names the mistakes', async (url, events, message) => {
    await using muster = await newMuster()
    await muster.run(['migrate'])
    const args = ['webhook', 'create', '--account', 'x', '--url', url, '--events', events]
    expect(await muster.run(args)).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    })
  })

  it('accepts http only to allowed IP addresses', async () => {
    await using muster = await newMuster()
    const { account_id: account } = await newAccount(muster)
    const create = (url: string, environment: Record<string, string> = {}) => {
      const webhook = ['--account', account, '--url', url, '--events', '*']
      return muster.run(['webhook', 'create', ...webhook], { environment })
    }
    const refused = await create('http://127.0.0.1:4000/')
    expect(refused).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('127.0.0.1 is not public'),
    })
    expect(refused.stderr).toContain('export WEBHOOK_ALLOW_ADDRESSES=127.0.0.0/8')
    expect((await create('ftp://example.com/')).stderr).toBe('The URL must begin with https://.\n')
    const allowed = { WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8' }
    expect(await create('http://127.0.0.1:4000/', allowed)).toMatchObject({ status: 0, stderr: '' })
  })
})

describe('webhook update', () => {
  it('--header and --remove-header: change the headers, and nothing shows their values', async () => {
    await using muster = await newMuster()
    const { account_id: accountId } = await newAccount(muster)
    const first = ['--header', 'X-Api-Key: first-value', '--header', 'X-Old: old-value']
    const { id } = await createWebhook(muster, accountId, '*', ...first)
    const update = ['webhook', 'update', id]
    const change = ['--header', 'x-api-key: second-value', '--remove-header', 'X-Old']
    expect(await muster.json([...update, ...change])).toEqual({
      id,
      changes: { headers: { from: 'X-Api-Key, X-Old', to: 'x-api-key (new value)' } },
    })
    const [listed] = await muster.json(['webhook', 'list'])
    expect(listed).toMatchObject({ header_names: ['x-api-key'] })
    expect(JSON.stringify(listed)).not.toContain('value')
    expect(await muster.run([...update, '--header', 'Host: a'])).toMatchObject({
      status: 1,
      stderr: 'Muster sets the header Host itself. Use another name.\n',
    })
  })
})

describe('webhook list', () => {
  it('shows international host names as people write them; the document has the stored URL', async () => {
    await using muster = await newMuster()
    const { account_id } = await newAccount(muster)
    const url = 'https://bücher.example/in?q=xn--1'
    await muster.json([
      ...['webhook', 'create', '--account', account_id, '--url', url, '--events', '*'],
    ])
    expect((await muster.run(['webhook', 'list'])).stdout).toContain(`  ${url}  `)
    expect(await muster.json(['webhook', 'list'])).toMatchObject([
      { url: 'https://xn--bcher-kva.example/in?q=xn--1' },
    ])
  })

  it('lists the webhooks with their health, without secrets', async () => {
    await using muster = await newMuster()
    const { accountId, id, secret } = await newWebhook(muster)
    const types = 'task.created, participant.created'
    const other = await createWebhook(muster, accountId, types, '--description', 'Second')
    await newDelivery(muster, accountId, id, 'retrying')
    const listed = await muster.json(['webhook', 'list'])
    expect(listed).toMatchObject([
      {
        id,
        account_id: accountId,
        url: ENDPOINT,
        description: '',
        event_types: ['*'],
        enabled: true,
        has_next_secret: false,
        health: { state: 'no_traffic', last_attempt_at: null, waiting: 1 },
      },
      { id: other.id, description: 'Second', event_types: ['task.created', 'participant.created'] },
    ])
    expect(await muster.json(['webhook', 'list', '--account', accountId])).toEqual(listed)
    const { stdout } = await muster.run(['webhook', 'list'])
    expect(stdout).not.toContain(secret)
    expect(stdout).toMatch(
      new RegExp(
        `^ID +HEALTH +SUCCEEDED +WAITING +URL +EVENTS\n${id} +no traffic +0 of 0 +1 +${ENDPOINT} +\\*\n`,
      ),
    )
  })
})

describe('webhook disable and enable', () => {
  it('change the state of a webhook', async () => {
    await using muster = await newMuster()
    const { id } = await newWebhook(muster)
    expect(await muster.json(['webhook', 'disable', id])).toEqual({ id, enabled: false })
    expect(await muster.json(['webhook', 'list'])).toMatchObject([{ id, enabled: false }])
    expect(await muster.json(['webhook', 'enable', id])).toEqual({ id, enabled: true })
    expect(await muster.json(['webhook', 'list'])).toMatchObject([{ id, enabled: true }])
  })
})

describe('webhook rotate', () => {
  it('prepares a secret, then activates it', async () => {
    await using muster = await newMuster()
    const { accountId, id, secret } = await newWebhook(muster)
    expect(await muster.run(['webhook', 'rotate', id, '--activate'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('next secret'),
    })

    const prepared = await muster.json(['webhook', 'rotate', id])
    expect(prepared).toEqual({ id, next_secret: expect.stringMatching(SECRET) })
    expect(await signingSecret(muster, accountId, id)).toBe(secret)
    expect(await muster.json(['webhook', 'list'])).toMatchObject([{ has_next_secret: true }])

    expect(await muster.json(['webhook', 'rotate', id, '--activate'])).toEqual({
      id,
      activated: true,
    })
    expect(await signingSecret(muster, accountId, id)).toBe(prepared.next_secret)
  })
})

describe('deliveries', () => {
  it('list: the newest first, filtered by state and limited in number', async () => {
    await using muster = await newMuster()
    const { accountId, id: webhook } = await newWebhook(muster)
    const pending = await newDelivery(muster, accountId, webhook, 'pending')
    const failed = await newDelivery(muster, accountId, webhook, 'failed')
    const list = ['deliveries', 'list', '--webhook', webhook]
    expect(await muster.json(list)).toEqual([
      {
        id: failed,
        event_id: null,
        event_type: 'task.created',
        state: 'failed',
        attempts: 1,
        next_attempt_at: null,
      },
      {
        id: pending,
        event_id: null,
        event_type: 'task.created',
        state: 'pending',
        attempts: 0,
        next_attempt_at: '1970-01-01T00:00:00.000Z',
      },
    ])
    expect(await muster.json([...list, '--state', 'pending'])).toMatchObject([{ id: pending }])
    expect(await muster.json([...list, '--limit', '1'])).toMatchObject([{ id: failed }])
    expect(await muster.json([...list, '--state', 'retrying'])).toEqual([])
  })

  it('attempts: shows each attempt with its response', async () => {
    await using muster = await newMuster()
    const { accountId, id: webhook } = await newWebhook(muster)
    const failed = await newDelivery(muster, accountId, webhook, 'failed')
    expect(await muster.json(['deliveries', 'attempts', failed])).toEqual([
      {
        number: 1,
        trigger: 'schedule',
        started_at: '1970-01-01T00:00:01.000Z',
        duration_ms: 12,
        outcome: 'http_error',
        status: 500,
        response_headers: { server: 'x' },
        response_body: 'oh',
        error: 'It said 500',
        address: null,
        phases: null,
      },
    ])
  })

  it('retry: retries a failed, resends a delivered and attempts a scheduled delivery', async () => {
    await using muster = await newMuster()
    const { accountId, id: webhook } = await newWebhook(muster)
    const failed = await newDelivery(muster, accountId, webhook, 'failed')
    const delivered = await newDelivery(muster, accountId, webhook, 'delivered')
    const due = await newDelivery(muster, accountId, webhook, 'pending')
    const retrying = await newDelivery(muster, accountId, webhook, 'retrying')
    expect(await muster.json(['deliveries', 'retry', failed])).toEqual({
      id: failed,
      trigger: 'retry',
    })
    expect(await muster.json(['deliveries', 'retry', delivered])).toEqual({
      id: delivered,
      trigger: 'resend',
    })
    expect(await muster.json(['deliveries', 'retry', due])).toEqual({
      id: due,
      trigger: 'schedule',
    })
    const startedAt = Date.now()
    expect(await muster.json(['deliveries', 'retry', retrying])).toEqual({
      id: retrying,
      trigger: 'schedule',
    })

    const db = openDatabase({ dataDir: muster.dataDir })
    const deliveries = await db
      .read('deliveries')
      .orderBy('id')
      .select('id', 'state', 'next_trigger', 'next_attempt_at')
    await db.close()
    expect(deliveries).toMatchObject([
      { id: failed, state: 'failed', next_trigger: 'retry' },
      { id: delivered, state: 'delivered', next_trigger: 'resend' },
      { id: due, state: 'pending', next_trigger: 'schedule', next_attempt_at: 0 },
      { id: retrying, state: 'retrying', next_trigger: 'schedule' },
    ])
    expect(deliveries[3].next_attempt_at).toBeGreaterThanOrEqual(startedAt - CLOCK_DIFFERENCE_MS)
    expect(deliveries[3].next_attempt_at).toBeLessThanOrEqual(Date.now() + CLOCK_DIFFERENCE_MS)
  })

  it('cancel: ends a delivery, and refuses one that has ended', async () => {
    await using muster = await newMuster()
    const { accountId, id: webhook } = await newWebhook(muster)
    const id = await newDelivery(muster, accountId, webhook, 'retrying')
    const cancel = ['deliveries', 'cancel', id]
    expect(await muster.json(cancel)).toEqual({ id, state: 'failed', failure_reason: 'cancelled' })
    expect(await muster.run(cancel)).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('has ended'),
    })
  })

  it('undelivered: lists deliveries of all webhooks, newest first', async () => {
    await using muster = await newMuster()
    const { accountId, id: webhook } = await newWebhook(muster)
    const { id: other } = await createWebhook(muster, accountId)
    const failed = await newDelivery(muster, accountId, webhook, 'failed')
    await newDelivery(muster, accountId, webhook, 'delivered')
    const pending = await newDelivery(muster, accountId, other, 'pending')
    const list = ['deliveries', 'undelivered', '--account', accountId]
    const undelivered = {
      event_id: null,
      event_type: 'task.created',
      failure_reason: null,
      created_at: '1970-01-01T00:00:00.000Z',
    }
    expect(await muster.json(list)).toEqual([
      {
        ...undelivered,
        id: pending,
        webhook_id: other,
        state: 'pending',
        attempts: 0,
        next_attempt_at: '1970-01-01T00:00:00.000Z',
        last_error: null,
      },
      {
        ...undelivered,
        id: failed,
        webhook_id: webhook,
        state: 'failed',
        attempts: 1,
        next_attempt_at: null,
        last_error: 'It said 500',
      },
    ])
    expect(await muster.json([...list, '--webhook', webhook])).toMatchObject([{ id: failed }])
    expect(await muster.json([...list, '--limit', '1'])).toMatchObject([{ id: pending }])
    expect((await muster.run(list)).stdout).toContain('It said 500')
    expect(await muster.run([...list, '--webhook', UNKNOWN])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(UNKNOWN),
    })
  })
})

describe('a command with an unknown ID', () => {
  it.each<[args: string[], message: string]>([
    [
      ['webhook', 'create', '--account', UNKNOWN, '--url', ENDPOINT, '--events', '*'],
      `There is no account ${UNKNOWN}\n`,
    ],
    [['webhook', 'list', '--account', UNKNOWN], `There is no account ${UNKNOWN}\n`],
    [['webhook', 'rotate', 'nonsense'], 'There is no webhook nonsense\n'],
    [['webhook', 'disable', UNKNOWN], `There is no webhook ${UNKNOWN}\n`],
    [['deliveries', 'list', '--webhook', UNKNOWN], `There is no webhook ${UNKNOWN}\n`],
    [['deliveries', 'retry', UNKNOWN], `There is no delivery ${UNKNOWN}\n`],
    [['deliveries', 'attempts', 'nonsense'], 'There is no delivery nonsense\n'],
    [['deliveries', 'cancel', UNKNOWN], `There is no delivery ${UNKNOWN}\n`],
    [['deliveries', 'undelivered', '--account', UNKNOWN], `There is no account ${UNKNOWN}\n`],
    [
      ['deliveries', 'retry-failed', '--webhook', UNKNOWN, '--since', '2026-11-21'],
      `There is no webhook ${UNKNOWN}\n`,
    ],
    [['webhook', 'test', UNKNOWN], `There is no webhook ${UNKNOWN}\n`],
    [['webhook', 'send-missed', UNKNOWN], `There is no webhook ${UNKNOWN}\n`],
    [['bulk', 'list', '--account', UNKNOWN], `There is no account ${UNKNOWN}\n`],
    [['bulk', 'pause', UNKNOWN], `There is no bulk job ${UNKNOWN}\n`],
  ])('%j is refused', async (args, message) => {
    await using muster = await newMuster()
    await muster.run(['migrate'])
    expect(await muster.run([...args, '--json'])).toEqual({
      status: 1,
      stdout: '',
      stderr: message,
    })
  })
})
