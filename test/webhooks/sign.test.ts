import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import {
  newSecret,
  openSecret,
  SecretUnreadable,
  sealSecret,
  secretKeysOf,
  secretOpener,
  signingKeys,
} from '../../webhooks/transport/secret.ts'
import { deliveryHeaders } from '../../webhooks/transport/sign.ts'
import { signatureOf } from '../receiver.ts'

const ID = '0193d7a0-6c1e-7b3a-9f42-5d8e1c2a7b90'
const EVENT_ID = '0193d7a0-6c1e-7b3a-9f42-0d1e2f3a4b5c'
const KEY = 'a secret key of the installation, long enough'
const KEYS = secretKeysOf(KEY)

describe('deliveryHeaders', () => {
  test('webhook-signature: the test vector of the Standard Webhooks libraries', () => {
    const body = Buffer.from('{"test": 2432232314}')
    const headers = deliveryHeaders(
      signingKeys('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'),
      { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', eventId: null },
      body,
      new Date(1_614_265_330_000),
    )
    expect(headers['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
    expect(headers['webhook-timestamp']).toBe('1614265330')
  })

  test('X-Service-Signature: hex over the raw body, with the whole secret (service-spec §5)', () => {
    const secret = newSecret()
    const body = Buffer.from('{"full_name":"Zoë"}')
    const headers = deliveryHeaders(
      signingKeys(secret),
      { id: ID, eventId: EVENT_ID },
      body,
      new Date(),
    )
    expect(headers['x-service-signature']).toBe(signatureOf(secret, body))
    expect(headers['x-service-signature']).toMatch(/^[0-9a-f]{64}$/)
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Muster-Webhooks/1',
      'webhook-id': ID,
      'x-event-id': EVENT_ID,
    })
  })

  test('the standardwebhooks package verifies the headers, and refuses another secret, body or time', () => {
    const secret = newSecret()
    const body = Buffer.from(JSON.stringify({ id: ID, text: 'Grüße 🎉' }))
    const headers = deliveryHeaders(
      signingKeys(secret),
      { id: ID, eventId: EVENT_ID },
      body,
      new Date(),
    )
    expect(new Webhook(secret).verify(body, headers)).toEqual({ id: ID, text: 'Grüße 🎉' })
    expect(() => new Webhook(newSecret()).verify(body, headers)).toThrow('No matching signature')
    expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow('No matching signature')
    const old = deliveryHeaders(
      signingKeys(secret),
      { id: ID, eventId: EVENT_ID },
      body,
      new Date(Date.now() - 10 * 60_000),
    )
    expect(() => new Webhook(secret).verify(body, old)).toThrow('too old')
  })
})

test('deliveryHeaders: a test event has the ID of its delivery', () => {
  const ids = { id: ID, eventId: null }
  const headers = deliveryHeaders(signingKeys(newSecret()), ids, Buffer.from('{}'), new Date())
  expect(headers['x-event-id']).toBe(ID)
})

describe('secrets', () => {
  test('newSecret: whsec_ and 32 random bytes', () => {
    expect(newSecret()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(newSecret()).not.toBe(newSecret())
  })

  test('a sealed secret can be opened; the same secret is sealed differently each time', () => {
    const secret = newSecret()
    const sealed = sealSecret(KEY, ID, secret)
    expect(openSecret(KEYS, ID, sealed)).toBe(secret)
    expect(sealed).not.toContain(secret.slice(6))
    expect(sealSecret(KEY, ID, secret)).not.toBe(sealed)
  })

  test('secretOpener: opens a sealed secret, and remembers it', () => {
    const secret = newSecret()
    const sealed = sealSecret(KEY, ID, secret)
    const open = secretOpener(KEYS)
    expect(open(ID, sealed).whole.export().toString()).toBe(secret)
    expect(open(ID, sealed)).toBe(open(ID, sealed))
  })

  test('the previous key opens what it sealed', () => {
    const secret = newSecret()
    const rotated = secretKeysOf(`${KEY}!`, KEY)
    expect(openSecret(rotated, ID, sealSecret(KEY, ID, secret))).toBe(secret)
    expect(openSecret(rotated, ID, sealSecret(rotated.newest(), ID, secret))).toBe(secret)
  })

  const sealed = sealSecret(KEY, ID, newSecret())
  test.each([
    { name: 'another key', open: () => openSecret(secretKeysOf(`${KEY}!`), ID, sealed) },
    { name: 'another webhook', open: () => openSecret(KEYS, ID.replace('0', '1'), sealed) },
    {
      name: 'a changed byte',
      open: () => openSecret(KEYS, ID, sealed.slice(0, -2) + (sealed.endsWith('AA') ? 'BB' : 'AA')),
    },
    { name: 'a text that is too short', open: () => openSecret(KEYS, ID, 'v1.AAAA') },
    { name: 'another version', open: () => openSecret(KEYS, ID, sealed.replace('v1', 'v2')) },
    { name: 'an empty text', open: () => openSecret(KEYS, ID, '') },
  ])('openSecret refuses $name', ({ open }) => {
    expect(open).toThrow(SecretUnreadable)
  })
})
