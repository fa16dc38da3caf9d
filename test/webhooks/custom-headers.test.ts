/** The headers that users add to the requests of a webhook. */
import { beforeAll, describe, expect, test } from 'vitest'
import { updateWebhook } from '../../records/webhooks.ts'
import { reencryptSecrets, startRotation } from '../../webhooks/rotate-secret-key.ts'
import { sealHeaders } from '../../webhooks/secret-keys.ts'
import {
  assertHeader,
  type HeaderChange,
  headersOpener,
  parseHeaderLines,
} from '../../webhooks/transport/custom-headers.ts'
import {
  newSecret,
  type SecretKeys,
  secretKeysOf,
  signingKeys,
} from '../../webhooks/transport/secret.ts'
import { deliveryHeaders } from '../../webhooks/transport/sign.ts'
import { until } from '../helpers.ts'
import {
  newInstallation,
  newSubscriber,
  newTenant,
  sharedInstallation,
  type Tenant,
} from './harness.ts'

const setHeaders = (
  { write }: Tenant,
  keys: SecretKeys,
  id: string,
  change: HeaderChange,
): Promise<unknown> =>
  write(async (scope) => {
    const headers = await sealHeaders(scope, keys, id, change)
    return updateWebhook(scope, id, { headers }, new Date())
  })

const storedHeaders = async ({ scope }: Tenant, id: string): Promise<Record<string, string>> =>
  JSON.parse((await scope.rows('webhooks').where({ id }).first()).headers_encrypted)

describe('a header', () => {
  test.each([
    ['X-Api-Key', 'a'],
    ['authorization', 'Bearer abc.def=='],
    ['x_y', 'a b'],
    ['X', '~'.repeat(1_000)],
  ])('%s: %s is accepted', (name, value) => {
    expect(() => assertHeader(name, value)).not.toThrow()
  })

  test.each([
    ['', 'a', /is not a header name/],
    ['X Key', 'a', /is not a header name/],
    ['Schlüssel', 'a', /is not a header name/],
    ['X-Key\r\nHost', 'a', /is not a header name/],
    ['X'.repeat(101), 'a', /is not a header name/],
    ['X-Key', '', /The value of X-Key must have 1 to 1,000 characters/],
    ['X-Key', ' a', /1 to 1,000/],
    ['X-Key', 'a\nHost: b', /1 to 1,000/],
    ['X-Key', 'ä', /1 to 1,000/],
    ['X-Key', 'a'.repeat(1_001), /1 to 1,000/],
  ])('%j: %j is refused', (name, value, message) => {
    expect(() => assertHeader(name, value)).toThrow(message)
  })

  const ownNames = deliveryHeaders(
    signingKeys(newSecret()),
    { id: 'a', eventId: null },
    Buffer.of(),
    new Date(),
  )
  test.each([
    ...Object.keys(ownNames),
    ...['traceparent', 'Host', 'Content-Length', 'CONTENT-ENCODING', 'Transfer-Encoding', 'Expect'],
    ...['Connection', 'Keep-Alive', 'Upgrade', 'TE', 'Trailer', 'Proxy-Authorization', 'Webhook-X'],
  ])('%s, which requests have already, is refused', (name) => {
    expect(() => assertHeader(name, 'a')).toThrow(/sets the header .* itself/)
  })

  test('is read from a line; a name that is there twice is refused', () => {
    expect(parseHeaderLines(['X-A: b: c ', '__proto__:d'])).toEqual(
      JSON.parse('{"X-A":"b: c","__proto__":"d"}'),
    )
    expect(() => parseHeaderLines(['X-A b'])).toThrow('“Name: value”')
    expect(() => parseHeaderLines(['X-A: b', 'x-a: c'])).toThrow('The header x-a is there twice.')
  })
})

describe('the headers of a webhook', () => {
  const installation = sharedInstallation()
  beforeAll(() => installation.start())

  test('are encrypted, sent with each request, and can be replaced and removed', async () => {
    await using subscriber = await newSubscriber(installation, { answers: [500, 204] })
    const { tenant, receiver, webhookId } = subscriber
    const { secretKeys } = installation.config
    const set = (change: HeaderChange) => setHeaders(tenant, secretKeys, webhookId, change)
    await set({ Authorization: 'Bearer old', 'X-Api-Key': 'secret-value', 'X-Old': '1' })
    await set({ authorization: 'Bearer new', 'x-old': null })
    expect(JSON.stringify(await tenant.scope.rows('webhooks'))).not.toMatch(/Bearer|secret-value/)

    const { id } = await tenant.emitOne()
    expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 2 })
    for (const { headers } of receiver.requests) {
      expect(headers).toMatchObject({ authorization: 'Bearer new', 'x-api-key': 'secret-value' })
      expect(headers).not.toHaveProperty('x-old')
    }
  })

  test('are not sent to another host: their values must be set again, or removed', async () => {
    const tenant = await newTenant(installation)
    const id = await tenant.subscribe('https://example.com/a')
    const { secretKeys } = installation.config
    await setHeaders(tenant, secretKeys, id, { 'X-A': 'a', 'X-B': 'b' })
    const change = (url: string, headers?: HeaderChange): Promise<unknown> =>
      tenant.write((scope) => updateWebhook(scope, id, { url, headers }, new Date()))
    await change('https://example.com/b')
    for (const url of [
      'https://example.org/b',
      'https://example.com:444/b',
      'http://example.com/b',
    ])
      await expect(change(url, { 'x-a': 'sealed' })).rejects.toThrow(
        'Enter them again, or remove the headers: X-B.',
      )
    await change('https://example.org/b', { 'x-a': 'sealed', 'X-B': null })
    expect(await storedHeaders(tenant, id)).toEqual({ 'x-a': 'sealed' })
  })

  test('are at most 20, also when two changes meet', async () => {
    const tenant = await newTenant(installation)
    const id = await tenant.subscribe('https://example.com/')
    const { secretKeys } = installation.config
    const numbered = (count: number, start = 0): HeaderChange =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-${start + n}`, 'a']))
    await setHeaders(tenant, secretKeys, id, numbered(10))
    const results = await Promise.allSettled(
      [10, 18, 26].map((start) => setHeaders(tenant, secretKeys, id, numbered(8, start))),
    )
    const refused = results.filter(({ status }) => status === 'rejected')
    expect(refused).toMatchObject([
      { reason: { message: 'A webhook may have at most 20 headers. Remove one first.' } },
      { reason: { name: 'TooManyHeaders' } },
    ])
    expect(Object.keys(await storedHeaders(tenant, id))).toHaveLength(18)
    await setHeaders(tenant, secretKeys, id, { ...numbered(2, 40), 'X-0': 'b' })
    expect(Object.keys(await storedHeaders(tenant, id))).toHaveLength(20)
  })
})

test('a rotation of the secret key encrypts the headers with the new key', async () => {
  await using installation = await newInstallation()
  const tenant = await newTenant(installation)
  const id = await tenant.subscribe('https://example.com/')
  const old = installation.config.secretKeys
  await setHeaders(tenant, old, id, { 'X-Api-Key': 'value' })
  const both = secretKeysOf('another secret key, long enough for it', old.newest())
  await startRotation(installation.db, both)
  await reencryptSecrets(installation.db, both, () => undefined)
  const open = headersOpener(secretKeysOf(both.newest()))
  expect(open(id, await storedHeaders(tenant, id))).toEqual({ 'X-Api-Key': 'value' })
})

test('an unreadable header pauses the deliveries without an attempt, until it is set again', async () => {
  await using installation = await newInstallation()
  await using subscriber = await newSubscriber(installation)
  const { tenant, receiver, webhookId } = subscriber
  const headers = { 'X-Api-Key': 'v1.AAAA' }
  await tenant.write((scope) => updateWebhook(scope, webhookId, { headers }, new Date()))
  const engine = await installation.start()
  const { id } = await tenant.emitOne()
  await until('the webhook is paused', () => engine.stats().pausedWebhooks === 1)
  expect(receiver.requests).toHaveLength(0)
  await setHeaders(tenant, installation.config.secretKeys, webhookId, { 'X-Api-Key': 'value' })
  expect(await tenant.settled(id)).toMatchObject({ state: 'delivered', attempts: 1 })
  expect(receiver.requests[0]?.headers).toMatchObject({ 'x-api-key': 'value' })
})
