/** Receivers with responses that never end. */
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { guardedAgent } from '../../webhooks/transport/guarded-agent.ts'
import { send } from '../../webhooks/transport/send.ts'
import { startNameServer } from '../dns.ts'
import { until } from '../helpers.ts'
import { type Answer, startListener, startReceiver } from '../receiver.ts'
import { newAuthority } from '../tls.ts'
import { deliver } from './harness.ts'
import {
  drip,
  expectFailure,
  flood,
  HEAD,
  LATEST_MS,
  type Result,
  says,
  sharedImpatientApp,
  TIMEOUT_MS,
  trust,
} from './hostile.ts'
import { post } from './single-attempt.ts'

const app = sharedImpatientApp()

describe.concurrent('a status whose rest never ends: the status decides, at the deadline', () => {
  test.each<{ what: string; answer: Answer; responseBody: RegExp | null }>([
    { what: 'dripping headers', answer: drip('x: y\r\n', HEAD), responseBody: null },
    { what: 'a dripping body', answer: drip('.', `${HEAD}\r\n`), responseBody: /^\.+$/ },
    {
      what: 'dripping chunks',
      answer: drip('1\r\n.\r\n', `${HEAD}transfer-encoding: chunked\r\n\r\n`),
      responseBody: /^\.+$/,
    },
    {
      what: 'a body that stops',
      answer: says(`${HEAD}content-length: 10\r\n\r\nhello`),
      responseBody: /^hello$/,
    },
    {
      what: 'a chunk size without end',
      answer: flood('a', `${HEAD}transfer-encoding: chunked\r\n\r\n5;`),
      responseBody: /^$/,
    },
  ])('200 and $what: delivered with one attempt', async ({ answer, responseBody }) => {
    await using receiver = await startReceiver({ answers: [answer] })
    const { delivery, attempts } = await deliver(app, receiver.url)
    expect(delivery).toMatchObject({ state: 'delivered', attempts: 1 })
    expect(attempts).toMatchObject([{ outcome: 'success', status: 200, error: null }])
    expect(attempts[0]?.responseBody).toEqual(responseBody && expect.stringMatching(responseBody))
    expect(attempts[0]?.durationMs).toBeLessThan(LATEST_MS)
    expect(receiver.requests).toHaveLength(1)
    await until('the connection is closed', () => receiver.openConnections() === 0)
  })

  test('500 and a body that stops: the attempt failed with this status', async () => {
    const stops = says('HTTP/1.1 500 Oops\r\ncontent-length: 10\r\n\r\nhello')
    await using receiver = await startReceiver({ answers: [stops, 204] })
    expectFailure(await deliver(app, receiver.url), {
      outcome: 'http_error',
      status: 500,
      responseBody: 'hello',
      error: 'The endpoint responded with status 500.',
    })
  })
})

describe.concurrent('no status: the attempt ends at its deadline', () => {
  const noResponse = {
    outcome: 'timeout',
    status: null,
    error: 'There was no response within 1 second.',
  } as const

  test.each<{ what: string; answer: Answer; want: Result }>([
    { what: 'an open connection', answer: 'hang', want: noResponse },
    { what: 'a dripping status line', answer: drip('a', 'HTTP/1.1 200 '), want: noResponse },
    {
      what: 'dripping interim responses',
      answer: drip('HTTP/1.1 102 Processing\r\n\r\n'),
      want: noResponse,
    },
    { what: 'a status line without end', answer: flood('a', 'HTTP/1.1 200 '), want: noResponse },
  ])('$what', async ({ answer, want }) => {
    await using receiver = await startReceiver({ answers: [answer, 204] })
    expectFailure(await deliver(app, receiver.url), want)
    expect(receiver.requests).toHaveLength(2)
    await until(
      'the connection of the first attempt is closed',
      () => receiver.openConnections() <= 1,
    )
  })

  test('a TLS handshake that does not finish', async ({ onTestFinished }) => {
    const authority = await newAuthority()
    await using receiver = await startReceiver({ tls: await authority.issue() })
    let isFirst = true
    await using listener = await startListener({
      onConnection(socket) {
        if (isFirst) socket.resume()
        else socket.pipe(connect(receiver.port, '127.0.0.1')).pipe(socket)
        isFirst = false
      },
    })
    onTestFinished(trust(authority))
    expectFailure(await deliver(app, `https://127.0.0.1:${listener.port}/`), {
      outcome: 'timeout',
      status: null,
      address: '127.0.0.1',
      error: 'The TLS handshake with 127.0.0.1 did not finish within 1 second.',
      phases: {
        dns: null,
        connect: expect.any(Number),
        tls: expect.any(Number),
        first_byte: null,
        body: null,
      },
    })
    await until(
      'the connection of the first attempt is closed',
      () => listener.openConnections() <= 1,
    )
  })

  test('a look-up without a response', async () => {
    await using names = await startNameServer(() => 'silence')
    const agent = guardedAgent([], names)
    const result = await send(agent, {
      ...post,
      url: 'https://name.test/',
      timeoutMs: TIMEOUT_MS,
    })
    expect(result).toMatchObject({
      outcome: 'timeout',
      address: null,
      error: 'The name name.test was not resolved within 1 second.',
      phases: { dns: expect.any(Number), connect: null, tls: null, first_byte: null, body: null },
    })
    expect(result.durationMs).toBeLessThan(LATEST_MS)
    await agent.destroy()
  })
})
