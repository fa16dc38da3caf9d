import { describe, expect, test } from 'vitest'
import type { SendResult } from '../../records/attempt.ts'
import { guardedAgent } from '../../webhooks/transport/guarded-agent.ts'
import { send } from '../../webhooks/transport/send.ts'
import { startNameServer } from '../dns.ts'
import { until } from '../helpers.ts'
import { type Answer, startReceiver } from '../receiver.ts'
import { cidrs, post } from './single-attempt.ts'

const allow = cidrs('127.0.0.0/8')

const spentMs = ({ phases }: SendResult): number =>
  Object.values(phases ?? {}).reduce((sum: number, ms) => sum + (ms ?? 0), 0)

test('a connection whose response is not valid HTTP is closed and not used again', async () => {
  const odd: Answer = {
    raw: (socket) =>
      void socket.write(
        'HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
      ),
  }
  await using receiver = await startReceiver({ validate: false, answers: [odd, 500] })
  const agent = guardedAgent(allow)
  const first = await send(agent, { ...post, url: receiver.url })
  const second = await send(agent, { ...post, url: receiver.url })
  await agent.destroy()
  expect([first, second]).toMatchObject([
    { outcome: 'success', status: 200, responseHeaders: null, responseBody: null },
    { outcome: 'http_error', status: 500 },
  ])
  expect(receiver.connections()).toBe(2)
})

describe('phases', () => {
  test('a new connection by name has all phases; a reused one has no look-up and no connect', async () => {
    await using receiver = await startReceiver({ validate: false })
    await using names = await startNameServer(() => ['127.0.0.1'])
    const agent = guardedAgent(allow, names)
    const url = `http://name.test:${receiver.port}/`
    const first = await send(agent, { ...post, url })
    // The agent does not reuse a connection in the turn of the event loop in which a response ends.
    const second = await until('a connection is reused', async () => {
      const result = await send(agent, { ...post, url })
      return result.phases?.connect === null && result
    })
    await agent.destroy()
    const ms = expect.any(Number)
    expect(first).toMatchObject({
      outcome: 'success',
      address: '127.0.0.1',
      phases: { dns: ms, connect: ms, tls: null, first_byte: ms, body: ms },
    })
    expect(second).toMatchObject({
      outcome: 'success',
      address: '127.0.0.1',
      phases: { dns: null, connect: null, tls: null, first_byte: ms, body: ms },
    })
    expect(receiver.connections()).toBeLessThan(receiver.requests.length)
    for (const result of [first, second])
      expect(Math.abs(spentMs(result) - result.durationMs)).toBeLessThan(1)
  })

  test('measure the time to the first byte and the time of the body', async () => {
    const slowBody: Answer = {
      raw(socket) {
        setTimeout(() => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n'), 200)
        setTimeout(() => socket.end('ok'), 500)
      },
    }
    await using receiver = await startReceiver({ validate: false, answers: [slowBody] })
    const agent = guardedAgent(allow)
    const { phases } = await send(agent, { ...post, url: receiver.url })
    await agent.destroy()
    expect(phases?.first_byte).toBeGreaterThan(150)
    expect(phases?.body).toBeGreaterThan(150)
    expect(phases?.connect).toBeLessThan(phases?.first_byte ?? 0)
  })

  test('are null after the phase in which the attempt ended', async () => {
    const receiver = await startReceiver({ validate: false })
    await receiver.close()
    const agent = guardedAgent(allow)
    const refused = await send(agent, { ...post, url: receiver.url })
    const blocked = await send(agent, { ...post, url: 'https://10.0.0.1/' })
    await agent.destroy()
    const none = { dns: null, connect: null, tls: null, first_byte: null, body: null }
    expect(refused).toMatchObject({
      outcome: 'unreachable',
      address: null,
      phases: { ...none, connect: expect.any(Number) },
    })
    expect(blocked).toMatchObject({ outcome: 'blocked', address: null, phases: null })
  })
})
