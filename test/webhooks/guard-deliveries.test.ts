import { describe, expect, test } from 'vitest'
import { guardedAgent } from '../../webhooks/transport/guarded-agent.ts'
import { send } from '../../webhooks/transport/send.ts'
import { sharedApp } from '../helpers.ts'
import { startListener, startReceiver } from '../receiver.ts'
import { addresses, expectNoConnections, inUrl } from './blocked.ts'
import { deliver } from './harness.ts'
import { cidrs, post } from './single-attempt.ts'

const listener = expectNoConnections()

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])(
    'with status %i is not followed, whatever its location',
    async (status) => {
      const locations = [
        ...addresses.map(({ address }) => `http://${inUrl(address)}:${listener().port}/`),
        ...['localhost', '2130706433', '0x7f.1', '[::1]'].map(
          (host) => `//${host}:${listener().port}/`,
        ),
        '/elsewhere',
      ]
      await using receiver = await startReceiver({
        validate: false,
        answers: (_, index) => ({ status, headers: { location: locations[index] ?? '' } }),
      })
      const agent = guardedAgent(cidrs('127.0.0.0/8'))
      for (const location of locations) {
        const result = await send(agent, { ...post, url: receiver.url })
        expect(result).toMatchObject({
          outcome: 'http_error',
          status,
          responseHeaders: { location },
        })
        expect(result.error).toBe(
          `The endpoint redirected (${status}). Redirects are not followed.`,
        )
      }
      await agent.destroy()
      expect(new Set(receiver.requests.map(({ path }) => path))).toEqual(new Set(['/webhooks']))
      expect(receiver.requests).toHaveLength(locations.length)
    },
  )
})

describe('the engine', () => {
  const app = sharedApp({
    role: 'all',
    environment: {
      WEBHOOK_ALLOW_ADDRESSES: '127.0.0.1/32',
      WEBHOOK_RETRY_DELAYS: '0,0,0,0,0,0,0,0,0',
      WEBHOOK_TIMEOUT_MS: '5000',
    },
  })

  test.each([
    ...['127.0.0.2', '[::ffff:127.0.0.2]', '0.0.0.0', '10.0.0.1'],
    ...['169.254.169.254', '[fd00:ec2::254]', '168.63.129.16', '100.100.100.200'],
    ...['[::1]', '[64:ff9b::a9fe:a9fe]', '[2002:7f00:1::]', '0x7f.2'],
  ])('records each attempt to %s as blocked, and opens no connection', async (host) => {
    await using other = await startListener({ host: '127.0.0.2' })
    const { delivery, attempts } = await deliver(app, `https://${host}:${other.port}/`)
    expect(delivery).toMatchObject({
      state: 'failed',
      attempts: 10,
      failureReason: 'attempts_exhausted',
    })
    expect(attempts.map(({ number, outcome, status }) => [number, outcome, status])).toEqual(
      Array.from({ length: 10 }, (_, index) => [index + 1, 'blocked', null]),
    )
    expect(new Set(attempts.map(({ error }) => error))).toEqual(new Set([attempts[0]?.error]))
    expect(attempts[0]?.error).toMatch(
      /^Webhooks may not connect to the IP address \S+, which is not public and not in WEBHOOK_ALLOW_ADDRESSES\.$/,
    )
    expect(other.connections()).toBe(0)
  })

  test('does not follow a redirect to a blocked IP address', async () => {
    await using other = await startListener({ host: '127.0.0.2' })
    await using receiver = await startReceiver({
      answers: [{ status: 307, headers: { location: `http://127.0.0.2:${other.port}/` } }],
    })
    const { delivery, attempts } = await deliver(app, receiver.url)
    expect(delivery).toMatchObject({ state: 'failed', attempts: 10 })
    expect(attempts[0]).toMatchObject({
      outcome: 'http_error',
      status: 307,
      error: expect.stringContaining('Redirects are not followed'),
    })
    expect(other.connections()).toBe(0)
  })
})
