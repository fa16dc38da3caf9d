/** Verification by the client, of what the engine really sends and of what somebody else may send. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyWebhook, type WebhookEvent, WebhookRefused } from '../../client/src/index.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { newSecret, sealSecret, signingKeys } from '../../webhooks/transport/secret.ts'
import { deliveryHeaders } from '../../webhooks/transport/sign.ts'
import { startApp, type TestApp } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'

const SIGNED_AT = new Date('2026-03-02T09:30:00Z')
const ID = '0193d7a3-9e04-7c15-8b62-4d7f0a3e5c91'
const EVENT = {
  id: ID,
  event_type: 'job_application.created',
  resource: { type: 'job_application', id: '0193d7a3-8f11-7d24-a0c6-7e2b5d9f1a38' },
  data: { screening_outcome: 'meets_all' },
}
const secret = newSecret()
const body = ` ${JSON.stringify(EVENT).replace('created', 'cr\\u0065ated')}\n`
const headers = deliveryHeaders(signingKeys(secret), ID, Buffer.from(body), SIGNED_AT)
const now = () => SIGNED_AT

async function reasonOf(verified: Promise<unknown>): Promise<string> {
  const error = await verified.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(WebhookRefused)
  return (error as WebhookRefused).reason
}

const without = (...names: string[]) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
const STANDARD = ['webhook-id', 'webhook-timestamp', 'webhook-signature']

describe('a real delivery', () => {
  it.each([
    ['text', body],
    ['a Buffer', Buffer.from(body)],
    ['an ArrayBuffer', new Uint8Array(Buffer.from(body)).buffer],
    ['a part of a larger one', Buffer.from(`xx${body}xx`).subarray(2, -2)],
  ])('is taken as %s', async (_, given) => {
    expect(await verifyWebhook(given, headers, secret, { now })).toEqual(EVENT)
  })

  it.each([
    ['Headers', new Headers(headers)],
    [
      'names in capitals',
      Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
      ),
    ],
    ['lists', Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))],
    ['the one of the specification alone', without(...STANDARD)],
  ])('is taken with headers as %s', async (_, given) => {
    expect(await verifyWebhook(body, given, secret, { now })).toEqual(EVENT)
  })

  it('is taken with either of two secrets, while they are changed', async () => {
    expect(await verifyWebhook(body, headers, [newSecret(), secret], { now })).toEqual(EVENT)
    expect(await reasonOf(verifyWebhook(body, headers, [newSecret(), newSecret()], { now }))).toBe(
      'signature',
    )
  })

  it('narrows data by event_type', async () => {
    const event: WebhookEvent = await verifyWebhook(body, headers, secret, { now })
    const outcomeOf = (given: WebhookEvent): string | null =>
      given.event_type === 'job_application.created'
        ? given.data.screening_outcome
        : `none of ${given.data.length}`
    expect(outcomeOf(event)).toBe('meets_all')
  })
})

describe('what is refused', () => {
  const forged =
    headers['x-service-signature']?.replace(/^./, (first) => (first === 'a' ? 'b' : 'a')) ?? ''

  it.each([
    ['no signature', without('x-service-signature')],
    ['an empty one', { ...headers, 'x-service-signature': '' }],
    ['a forged one', { ...headers, 'x-service-signature': forged }],
    [
      'a truncated one',
      { ...headers, 'x-service-signature': headers['x-service-signature']?.slice(0, -2) },
    ],
    [
      'one in capitals',
      { ...headers, 'x-service-signature': headers['x-service-signature']?.toUpperCase() },
    ],
    [
      'a time that was not signed',
      { ...headers, 'webhook-timestamp': String(SIGNED_AT.getTime() / 1000 + 1) },
    ],
    ['an id that was not signed', { ...headers, 'webhook-id': 'another' }],
    ['a time without its signature', without('webhook-signature')],
    [
      'a signature of another kind',
      { ...headers, 'webhook-signature': headers['webhook-signature']?.replace('v1,', 'v1a,') },
    ],
    ['nothing at all', {}],
  ])('%s', async (_, given) => {
    expect(await reasonOf(verifyWebhook(body, given, secret, { now }))).toBe('signature')
  })

  it.each([
    ['changed', body.replace('meets_all', 'meets_ALL')],
    ['written again', JSON.stringify(JSON.parse(body))],
    ['cut', body.slice(0, -1)],
    ['empty', ''],
  ])('a body that was %s', async (_, given) => {
    expect(await reasonOf(verifyWebhook(given, headers, secret, { now }))).toBe('signature')
  })

  it('the signature of another secret', async () => {
    expect(await reasonOf(verifyWebhook(body, headers, newSecret(), { now }))).toBe('signature')
  })

  it('a repeat after five minutes, and one from the future', async () => {
    const later = (seconds: number) => ({
      now: () => new Date(SIGNED_AT.getTime() + seconds * 1000),
    })
    for (const seconds of [-300, 300])
      expect(await verifyWebhook(body, headers, secret, later(seconds))).toEqual(EVENT)
    for (const seconds of [-301, 301])
      expect(await reasonOf(verifyWebhook(body, headers, secret, later(seconds)))).toBe('timestamp')
    expect(
      await verifyWebhook(body, headers, secret, { ...later(3000), toleranceSeconds: 3600 }),
    ).toEqual(EVENT)
  })

  it('one without a time, where that is asked for', async () => {
    expect(
      await reasonOf(
        verifyWebhook(body, without(...STANDARD), secret, { now, requireTimestamp: true }),
      ),
    ).toBe('timestamp')
  })

  it('what is rightly signed and no delivery', async () => {
    for (const odd of ['[]', 'null', '{', '{"id": 1}', '']) {
      const signed = deliveryHeaders(signingKeys(secret), ID, Buffer.from(odd), SIGNED_AT)
      expect(await reasonOf(verifyWebhook(odd, signed, secret, { now }))).toBe('body')
    }
  })

  it('mistakes of the caller are said: no secret, and a body that was parsed', async () => {
    for (const missing of ['', []])
      await expect(verifyWebhook(body, headers, missing)).rejects.toThrow(
        'The signing secret is missing',
      )
    await expect(verifyWebhook(EVENT as never, headers, secret)).rejects.toThrow(
      'a parsed body cannot be verified',
    )
  })
})

describe('the engine', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ role: 'all' })
  })
  afterAll(() => app[Symbol.asyncDispose]())

  it('sends what verifies', async () => {
    await using receiver = await startReceiver()
    const account = await app.newAccount()
    const webhook = { url: receiver.url, description: '', eventTypes: ['*'], createdBy: null }
    const seal = (id: string): string => sealSecret(app.config.secretKey, id, secret)
    await transaction(app.db, (trx) =>
      insertWebhook(writeScope(trx, account.accountId), webhook, seal, new Date()),
    )
    const made = await app.as(account).post('/participants', { full_name: 'Ada Lovelace' })
    const [request] = await receiver.received(1)
    const event = await verifyWebhook(request?.body ?? '', request?.headers ?? {}, secret, {
      requireTimestamp: true,
    })
    expect(event).toMatchObject({
      event_type: 'participant.created',
      resource: { type: 'participant', id: made.body.id },
      data: [],
    })
  })
})
