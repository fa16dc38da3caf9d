/** Receivers with responses that are too large or not valid. */
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { guardedAgent } from '../../webhooks/transport/guarded-agent.ts'
import { send } from '../../webhooks/transport/send.ts'
import { type Answer, startListener, startReceiver } from '../receiver.ts'
import { deliver } from './harness.ts'
import {
  expectFailure,
  flood,
  HEAD,
  type Result,
  says,
  saysAndEnds,
  sharedImpatientApp,
  TIMEOUT_MS,
} from './hostile.ts'
import { cidrs, post } from './single-attempt.ts'

const MIB = 1024 * 1024
const OK = `${HEAD}content-length: 2\r\n\r\nok`

const app = sharedImpatientApp()

describe('a response that ends at once', () => {
  const closed = {
    outcome: 'unreachable',
    status: null,
    error: 'The endpoint closed the connection before it responded.',
  } as const
  const notHttp = {
    outcome: 'invalid_response',
    status: null,
    error: 'The response is not valid HTTP/1.1.',
  } as const
  const onlyInterim = {
    outcome: 'invalid_response',
    status: null,
    error: 'The endpoint sent only interim responses (1xx), more than 100 of them.',
  } as const

  test.each<{ what: string; answer: Answer; want: Result }>([
    {
      what: '10 MB of headers before the status',
      answer: says(`HTTP/1.1 103 Early Hints\r\n${'x-many: aaaaaaaaaa\r\n'.repeat(500_000)}`),
      want: {
        outcome: 'invalid_response',
        status: null,
        error: 'The headers of the interim responses (1xx) are too large.',
      },
    },
    {
      what: 'a flood of 102 Processing',
      answer: flood('HTTP/1.1 102 Processing\r\n\r\n'),
      want: onlyInterim,
    },
    {
      what: 'a flood of 103 Early Hints',
      answer: flood('HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n'),
      want: onlyInterim,
    },
    {
      what: 'a flood of 100 Continue',
      answer: flood('HTTP/1.1 100 Continue\r\n\r\n'),
      want: onlyInterim,
    },
    {
      what: '101 Switching Protocols',
      answer: says(
        'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
      ),
      want: {
        outcome: 'invalid_response',
        status: null,
        error: 'The endpoint responded with 101 Switching Protocols, which was not requested.',
      },
    },
    { what: 'another protocol', answer: says('220 mail.example.com ESMTP\r\n'), want: notHttp },
    { what: 'bytes of no protocol', answer: says('\0\x01\x02\xff'.repeat(100)), want: notHttp },
    { what: 'HTTP/0.9', answer: saysAndEnds('<html></html>'), want: notHttp },
    { what: 'HTTP/2', answer: saysAndEnds('HTTP/2 200 OK\r\n\r\n'), want: notHttp },
    { what: 'a status below 100', answer: saysAndEnds('HTTP/1.1 099 Odd\r\n\r\n'), want: notHttp },
    {
      what: 'a failure with two lengths',
      answer: saysAndEnds('HTTP/1.1 500 Oops\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n'),
      want: {
        outcome: 'http_error',
        status: 500,
        responseHeaders: null,
        responseBody: null,
        error: 'The endpoint responded with status 500.',
      },
    },
    { what: 'nothing, and the connection closed', answer: saysAndEnds(''), want: closed },
    { what: 'half of the status line', answer: saysAndEnds('HTTP/1.1 200 O'), want: closed },
    {
      what: 'interim responses and an end',
      answer: saysAndEnds('HTTP/1.1 103 Early Hints\r\n\r\n'),
      want: closed,
    },
    { what: 'a cut connection', answer: 'reset', want: closed },
    {
      what: 'a failure in HTTP/1.0',
      answer: saysAndEnds('HTTP/1.0 500 Broken\r\n\r\nsorry'),
      want: {
        outcome: 'http_error',
        status: 500,
        responseBody: 'sorry',
        error: 'The endpoint responded with status 500.',
      },
    },
    {
      what: 'a failure without end',
      answer: flood('a', 'HTTP/1.1 500 Broken\r\n\r\n'),
      want: {
        outcome: 'http_error',
        status: 500,
        responseBody: 'a'.repeat(16_384),
        error: 'The endpoint responded with status 500.',
      },
    },
  ])('$what: a failed attempt', async ({ answer, want }) => {
    await using receiver = await startReceiver({ answers: [answer, 204] })
    expectFailure(await deliver(app, receiver.url), want)
    expect(receiver.requests).toHaveLength(2)
  })

  const bomb = gzipSync(Buffer.alloc(50_000_000))
  test.each<{ what: string; answer: Answer; body: unknown }>([
    { what: 'HTTP/1.0', answer: saysAndEnds('HTTP/1.0 200 OK\r\n\r\nhello'), body: 'hello' },
    {
      what: '100 Continue at once, and the rest later',
      answer: {
        raw(socket) {
          for (const [index, text] of ['HTTP/1.1 10', '0 Continue\r\n\r', '\n', OK].entries())
            setTimeout(() => socket.write(text), index * 50)
        },
      },
      body: 'ok',
    },
    {
      what: '60 KiB of headers',
      answer: says(
        `${HEAD}${`x-many: ${'a'.repeat(990)}\r\n`.repeat(60)}content-length: 0\r\n\r\n`,
      ),
      body: '',
    },
    {
      what: '20 KiB of cookies',
      answer: says(
        `${HEAD}${`set-cookie: ${'a'.repeat(990)}\r\n`.repeat(20)}content-length: 0\r\n\r\n`,
      ),
      body: '',
    },
    { what: '10 MB of headers', answer: says(`${HEAD}x: ${'a'.repeat(10_000_000)}`), body: null },
    { what: 'headers without end', answer: flood('x-more: aaaaaaaaaa\r\n', HEAD), body: null },
    { what: 'half of the headers', answer: saysAndEnds(`${HEAD}content-le`), body: null },
    {
      what: 'two equal lengths',
      answer: says(`${HEAD}content-length: 2\r\ncontent-length: 2\r\n\r\nok`),
      body: null,
    },
    {
      what: 'a length beside chunks',
      answer: says(
        `${HEAD}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
      ),
      body: null,
    },
    {
      what: 'a folded header',
      answer: says(`${HEAD}x-name: a\r\n b\r\ncontent-length: 0\r\n\r\n`),
      body: null,
    },
    { what: 'NUL in a header', answer: says(`${HEAD}x-name: a\0b\r\n\r\n`), body: null },
    { what: 'a single LF after each line', answer: says('HTTP/1.1 200 OK\n\n'), body: null },
    {
      what: 'a few interim responses first',
      answer: says(
        `${'HTTP/1.1 102 Processing\r\n\r\n'.repeat(20)}${HEAD}content-length: 0\r\n\r\n`,
      ),
      body: '',
    },
    {
      what: 'broken chunks',
      answer: says(`${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nhello`),
      body: 'hello',
    },
    {
      what: 'a chunk of the greatest size',
      answer: saysAndEnds(`${HEAD}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nhello`),
      body: 'hello',
    },
    {
      what: 'trailers of 10 MB',
      answer: says(`${HEAD}transfer-encoding: chunked\r\n\r\n0\r\nx: ${'a'.repeat(10_000_000)}`),
      body: '',
    },
    {
      what: 'half of the body',
      answer: saysAndEnds(`${HEAD}content-length: 100\r\n\r\nhello`),
      body: 'hello',
    },
    { what: 'a body without end', answer: flood('a', `${HEAD}\r\n`), body: 'a'.repeat(16_384) },
    {
      what: 'chunks without end',
      answer: flood('1\r\na\r\n', `${HEAD}transfer-encoding: chunked\r\n\r\n`),
      body: 'a'.repeat(16_384),
    },
    // The body is stored compressed, and begins with the magic number of gzip.
    {
      what: 'a gzip bomb',
      answer: { status: 200, headers: { 'content-encoding': 'gzip' }, body: bomb },
      body: expect.stringMatching(/^[^\ufffd]\ufffd/),
    },
  ])('$what, with a status of success: delivered', async ({ answer, body }) => {
    await using receiver = await startReceiver({ answers: [answer] })
    const { delivery, attempts } = await deliver(app, receiver.url)
    expect(delivery).toMatchObject({ state: 'delivered', attempts: 1 })
    expect(attempts).toMatchObject([
      { outcome: 'success', status: 200, error: null, address: '127.0.0.1' },
    ])
    expect(attempts[0]?.responseBody).toEqual(body)
    expect(attempts[0]?.responseBody?.length ?? 0).toBeLessThanOrEqual(16_384)
    expect(receiver.requests[0]?.headers).not.toHaveProperty('accept-encoding')
  })

  test.each([
    {
      what: 'success',
      response: 'HTTP/1.1 204 No Content\r\n\r\n',
      want: { outcome: 'success', status: 204 },
    },
    {
      what: 'failure',
      response: 'HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n',
      want: { outcome: 'http_error', status: 413 },
    },
  ])('$what: a response before the request is read counts', async ({ response, want }) => {
    let isFirst = true
    await using listener = await startListener({
      onConnection(socket) {
        socket.write(isFirst ? response : 'HTTP/1.1 204 No Content\r\n\r\n')
        isFirst = false
      },
    })
    const { attempts } = await deliver(app, `http://127.0.0.1:${listener.port}/`)
    expect(attempts[0]).toMatchObject(want)
    expect(attempts.at(-1)).toMatchObject({ outcome: 'success' })
  })

  test('a name that does not exist: unreachable', async () => {
    const { delivery, attempts } = await deliver(app, 'https://nothing.invalid/')
    expect(delivery).toMatchObject({ state: 'failed', attempts: 10 })
    expect(attempts).toHaveLength(10)
    expect(attempts[0]).toMatchObject({ outcome: 'unreachable', status: null, address: null })
    expect(attempts[0]?.error).toMatch(/^The name nothing\.invalid could not be resolved/)
  })
})

test('many floods at once: memory stays flat, and the agent stops reading a long body', async () => {
  const floods = [
    { kind: 'body', answer: flood('a', `${HEAD}\r\n`) },
    { kind: 'headers', answer: flood('x-more: aaaaaaaaaa\r\n', HEAD) },
    { kind: 'interim responses', answer: flood('HTTP/1.1 103 Early Hints\r\n\r\n') },
    { kind: 'status line', answer: flood('a', 'HTTP/1.1 200 ') },
    { kind: 'chunk size', answer: flood('a', `${HEAD}transfer-encoding: chunked\r\n\r\n5;`) },
  ]
  const sent: { kind: string; socket: Socket }[] = []
  await using receiver = await startReceiver({
    validate: false,
    answers: (_, index) => ({
      raw(socket) {
        const flooding = floods[index % floods.length]
        if (!flooding) return
        sent.push({ kind: flooding.kind, socket })
        flooding.answer.raw(socket)
      },
    }),
  })
  const agent = guardedAgent(cidrs('127.0.0.0/8'))
  const request = { ...post, url: receiver.url, timeoutMs: TIMEOUT_MS }
  const sendFifty = () => Promise.all(Array.from({ length: 50 }, () => send(agent, request)))
  await sendFifty()
  const before = process.memoryUsage().rss
  await sendFifty()
  await sendFifty()
  const grownBytes = process.memoryUsage().rss - before
  await agent.destroy()

  expect(grownBytes).toBeLessThan(200 * MIB)
  // The agent ends these floods before the deadline.
  const soonEnded = sent.filter(({ kind }) =>
    ['body', 'headers', 'interim responses'].includes(kind),
  )
  expect(new Set(soonEnded.map(({ kind }) => kind)).size).toBe(3)
  // The sockets of a loopback connection buffer some MiB that the agent does not read.
  expect(Math.max(...soonEnded.map(({ socket }) => socket.bytesWritten))).toBeLessThan(16 * MIB)
})
