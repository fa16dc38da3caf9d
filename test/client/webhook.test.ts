/** `verifyWebhook` of the client accepts deliveries of the service and refuses forged ones. */
import { describe, expect, it } from 'vitest'
import { verifyWebhook, type WebhookEvent, WebhookRefused } from '../../client/src/index.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { newSecret, sealSecret, signingKeys } from '../../webhooks/transport/secret.ts'
import { signatureHeaders } from '../../webhooks/transport/sign.ts'
import { sharedApp } from '../helpers.ts'
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
/** Not the text of JSON.stringify: the signature is that of the bytes. */
const body = ` ${JSON.stringify(EVENT).replace('created', 'cr\\u0065ated')}\n`
const headers = signatureHeaders(signingKeys(secret), ID, Buffer.from(body), SIGNED_AT)
const now = () => SIGNED_AT

async function refusalReason(verified: Promise<unknown>): Promise<string> {
  const error = await verified.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(WebhookRefused)
  return (error as WebhookRefused).reason
}

/** The signed headers without these. */
const without = (...names: string[]) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
/** The headers of Standard Webhooks. */
const STANDARD = ['webhook-id', 'webhook-timestamp', 'webhook-signature']

describe('a signed delivery', () => {
  it.each([
    ['text', body],
    ['a Buffer', Buffer.from(body)],
    ['an ArrayBuffer', new Uint8Array(Buffer.from(body)).buffer],
    ['a part of a larger Buffer', Buffer.from(`xx${body}xx`).subarray(2, -2)],
  ])('is accepted as %s', async (_, input) => {
    expect(await verifyWebhook(input, headers, secret, { now })).toEqual(EVENT)
  })

  it.each([
    ['Headers', new Headers(headers)],
    [
      'upper-case names',
      Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
      ),
    ],
    ['lists', Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))],
    ['X-Service-Signature only', without(...STANDARD)],
  ])('is accepted with headers as %s', async (_, input) => {
    expect(await verifyWebhook(body, input, secret, { now })).toEqual(EVENT)
  })

  it('is accepted with either of two secrets during a rotation', async () => {
    expect(await verifyWebhook(body, headers, [newSecret(), secret], { now })).toEqual(EVENT)
    expect(
      await refusalReason(verifyWebhook(body, headers, [newSecret(), newSecret()], { now })),
    ).toBe('signature')
  })

  it('narrows data by event_type', async () => {
    const event: WebhookEvent = await verifyWebhook(body, headers, secret, { now })
    const toOutcome = (input: WebhookEvent): string | null => {
      if (input.event_type === 'muster.quota_reached') return input.data.text
      return input.event_type === 'job_application.created'
        ? input.data.screening_outcome
        : `none of ${JSON.stringify(input.data)}`
    }
    expect(toOutcome(event)).toBe('meets_all')
  })
})

describe('verifyWebhook refuses', () => {
  const forged =
    headers['x-service-signature']?.replace(/^./, (first) => (first === 'a' ? 'b' : 'a')) ?? ''

  it.each([
    ['no signature', without('x-service-signature')],
    ['an empty signature', { ...headers, 'x-service-signature': '' }],
    ['a forged signature', { ...headers, 'x-service-signature': forged }],
    [
      'a truncated signature',
      { ...headers, 'x-service-signature': headers['x-service-signature']?.slice(0, -2) },
    ],
    [
      'an upper-case signature',
      { ...headers, 'x-service-signature': headers['x-service-signature']?.toUpperCase() },
    ],
    [
      'an unsigned time',
      { ...headers, 'webhook-timestamp': String(SIGNED_AT.getTime() / 1000 + 1) },
    ],
    ['an unsigned ID', { ...headers, 'webhook-id': 'another' }],
    ['a time without its signature', without('webhook-signature')],
    [
      'a signature with an unknown version',
      { ...headers, 'webhook-signature': headers['webhook-signature']?.replace('v1,', 'v1a,') },
    ],
    ['no headers', {}],
  ])('%s', async (_, input) => {
    expect(await refusalReason(verifyWebhook(body, input, secret, { now }))).toBe('signature')
  })

  it.each([
    ['changed', body.replace('meets_all', 'meets_ALL')],
    ['reformatted', JSON.stringify(JSON.parse(body))],
    ['truncated', body.slice(0, -1)],
    ['empty', ''],
  ])('a body that is %s', async (_, input) => {
    expect(await refusalReason(verifyWebhook(input, headers, secret, { now }))).toBe('signature')
  })

  it('the signature of another secret', async () => {
    expect(await refusalReason(verifyWebhook(body, headers, newSecret(), { now }))).toBe(
      'signature',
    )
  })

  it('a delivery that was signed over five minutes before or after the current time', async () => {
    const later = (seconds: number) => ({
      now: () => new Date(SIGNED_AT.getTime() + seconds * 1000),
    })
    for (const seconds of [-300, 300])
      expect(await verifyWebhook(body, headers, secret, later(seconds))).toEqual(EVENT)
    for (const seconds of [-301, 301])
      expect(await refusalReason(verifyWebhook(body, headers, secret, later(seconds)))).toBe(
        'timestamp',
      )
    expect(
      await verifyWebhook(body, headers, secret, { ...later(3000), toleranceSeconds: 3600 }),
    ).toEqual(EVENT)
  })

  it('a delivery without a signed time if requireTimestamp is set', async () => {
    expect(
      await refusalReason(
        verifyWebhook(body, without(...STANDARD), secret, { now, requireTimestamp: true }),
      ),
    ).toBe('timestamp')
  })

  it('a signed body that is not a delivery', async () => {
    for (const odd of ['[]', 'null', '{', '{"id": 1}', '']) {
      const signed = signatureHeaders(signingKeys(secret), ID, Buffer.from(odd), SIGNED_AT)
      expect(await refusalReason(verifyWebhook(odd, signed, secret, { now }))).toBe('body')
    }
  })

  it('a missing secret and a parsed body, with an error for the developer', async () => {
    for (const missing of ['', []])
      await expect(verifyWebhook(body, headers, missing)).rejects.toThrow(
        'The signing secret is missing',
      )
    await expect(verifyWebhook(EVENT as never, headers, secret)).rejects.toThrow(
      'a parsed body cannot be verified',
    )
  })
})

describe('the service', () => {
  const app = sharedApp({ role: 'all' })

  it('sends deliveries that verifyWebhook accepts', async () => {
    await using receiver = await startReceiver()
    const account = await app.newAccount()
    const webhook = { url: receiver.url, description: '', eventTypes: ['*'], createdBy: null }
    const seal = (id: string): string => sealSecret(app.config.secretKeys.newest(), id, secret)
    await transaction(app.db, (trx) =>
      insertWebhook(writeScope(trx, account.accountId), webhook, seal, new Date()),
    )
    const participant = await app.as(account).post('/participants', { full_name: 'Ada Lovelace' })
    const [request] = await receiver.received(1)
    const event = await verifyWebhook(request?.body ?? '', request?.headers ?? {}, secret, {
      requireTimestamp: true,
    })
    expect(event).toMatchObject({
      event_type: 'participant.created',
      resource: { type: 'participant', id: participant.body.id },
      data: [],
    })
  })
})
