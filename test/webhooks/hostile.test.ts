/** Receivers that misbehave. Each costs one attempt, which says what was wrong, and no more than
 *  its deadline. */
import { connect, type Socket } from 'node:net'
import tls from 'node:tls'
import { gzipSync } from 'node:zlib'
import ipaddr from 'ipaddr.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Attempt } from '../../records/attempts.ts'
import type { Delivery } from '../../records/deliveries.ts'
import { guardedAgent } from '../../webhooks/transport/egress.ts'
import { send } from '../../webhooks/transport/send.ts'
import { startNameServer } from '../dns.ts'
import { until } from '../helpers.ts'
import { type Answer, startListener, startReceiver } from '../receiver.ts'
import { type Authority, type CertificateOptions, newAuthority, newCertificate } from '../tls.ts'
import { type Deliveries, startDeliveries } from './deliveries.ts'

const TIMEOUT_MS = 1_000
const MIB = 1024 * 1024
/** A loaded machine is late. */
const LATEST_MS = 6_000

let engine: Deliveries
beforeAll(async () => {
  engine = await startDeliveries({
    WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
    WEBHOOK_RETRY_DELAYS: '0.01,0.01,0.01,0.01,0.01,0.01,0.01,0.01,0.01',
  })
})
afterAll(() => engine[Symbol.asyncDispose]())

const HEAD = 'HTTP/1.1 200 OK\r\n'
const says = (text: string): Answer => ({ raw: (socket) => void socket.write(text) })
const saysAndEnds = (text: string): Answer => ({ raw: (socket) => void socket.end(text) })

/** Says it again and again, as fast as it is taken. */
function flood(text: string, start = ''): { raw: (socket: Socket) => void } {
  const piece = text.repeat(Math.ceil(65_536 / text.length))
  return {
    raw(socket) {
      const more = (): void => {
        // A turn of the loop between any two: sender and receiver share it.
        if (!socket.destroyed) socket.write(piece, () => setImmediate(more))
      }
      socket.write(start, more)
    },
  }
}

/** Says it again every 20 ms. */
function drip(text: string, start = ''): Answer {
  return {
    raw(socket) {
      socket.write(start)
      const timer = setInterval(() => socket.write(text), 20)
      socket.once('close', () => clearInterval(timer))
    },
  }
}

type Result = Partial<Omit<Attempt, 'error'>> & { error: string | null }

/** One attempt with this result, then one that succeeds: its place was free again. */
function expectFailure(
  { delivery, attempts }: { delivery: Delivery; attempts: Attempt[] },
  want: Result,
): void {
  expect(attempts).toMatchObject([
    { number: 1, ...want },
    { number: 2, outcome: 'success' },
  ])
  expect(delivery).toMatchObject({ state: 'delivered', attempts: 2 })
  const { outcome, durationMs } = attempts[0] as Attempt
  if (outcome === 'timeout') expect(durationMs).toBeGreaterThanOrEqual(TIMEOUT_MS - 1)
  expect(durationMs).toBeLessThan(LATEST_MS)
}

/** Until `afterwards` calls what it is given. */
function trust(authority: Authority, afterwards: (undo: () => void) => void): void {
  const before = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...before, authority.cert])
  afterwards(() => tls.setDefaultCACertificates(before))
}

describe('what ends at once', () => {
  const closed = {
    outcome: 'unreachable',
    status: null,
    error: 'The endpoint closed the connection before it responded.',
  } as const
  const notHttp = {
    outcome: 'unreachable',
    status: null,
    error: 'The response is not valid HTTP/1.1.',
  } as const
  const tooLarge = {
    outcome: 'unreachable',
    status: null,
    error: 'The headers of the response are too large.',
  } as const
  const notAsLong = {
    outcome: 'unreachable',
    status: null,
    error: 'The length of the response does not match its Content-Length.',
  } as const
  const onlyInterim = {
    outcome: 'unreachable',
    status: null,
    error: 'The endpoint sent only interim responses (1xx), more than 100 of them.',
  } as const

  test.each<{ what: string; answer: Answer; want: Result }>([
    {
      what: 'a header of 10 MB',
      answer: says(`${HEAD}x-large: ${'a'.repeat(10_000_000)}\r\n\r\n`),
      want: tooLarge,
    },
    {
      what: '10 MB of headers',
      answer: says(`${HEAD}${'x-many: aaaaaaaaaa\r\n'.repeat(500_000)}\r\n`),
      want: tooLarge,
    },
    { what: 'headers without end', answer: flood('x-more: aaaaaaaaaa\r\n', HEAD), want: tooLarge },
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
      want: {
        outcome: 'unreachable',
        status: null,
        error: 'The endpoint responded with 100 Continue, which was not requested.',
      },
    },
    {
      what: '101 Switching Protocols',
      answer: says(
        'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
      ),
      want: {
        outcome: 'unreachable',
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
      what: 'two lengths',
      answer: saysAndEnds(`${HEAD}content-length: 3\r\ncontent-length: 4\r\n\r\nabcd`),
      want: notAsLong,
    },
    { what: 'nothing, and the connection closed', answer: saysAndEnds(''), want: closed },
    { what: 'half of the headers', answer: saysAndEnds(`${HEAD}content-le`), want: closed },
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
    expectFailure(await engine.deliver(receiver.url), want)
    expect(receiver.requests).toHaveLength(2)
  })

  const bomb = gzipSync(Buffer.alloc(50_000_000))
  test.each<{ what: string; answer: Answer; body: unknown }>([
    { what: 'HTTP/1.0', answer: saysAndEnds('HTTP/1.0 200 OK\r\n\r\nhello'), body: 'hello' },
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
      what: 'a chunk that says it is endless',
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
    // Not unpacked: a body of zeros would be 16 KiB of replaced NULs, and the packed one begins
    // with its magic number.
    {
      what: 'a gzip bomb',
      answer: { status: 200, headers: { 'content-encoding': 'gzip' }, body: bomb },
      body: expect.stringMatching(/^[^\ufffd]\ufffd/),
    },
  ])('$what, with a status that says success: delivered', async ({ answer, body }) => {
    await using receiver = await startReceiver({ answers: [answer] })
    const { delivery, attempts } = await engine.deliver(receiver.url)
    expect(delivery).toMatchObject({ state: 'delivered', attempts: 1 })
    expect(attempts).toMatchObject([
      { outcome: 'success', status: 200, error: null, address: '127.0.0.1' },
    ])
    expect(attempts[0]?.responseBody).toEqual(body)
    expect(attempts[0]?.responseBody?.length).toBeLessThanOrEqual(16_384)
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
  ])('$what, answered before the request is read, counts', async ({ response, want }) => {
    let first = true
    await using listener = await startListener({
      onConnection(socket) {
        socket.write(first ? response : 'HTTP/1.1 204 No Content\r\n\r\n')
        first = false
      },
    })
    const { attempts } = await engine.deliver(`http://127.0.0.1:${listener.port}/`)
    expect(attempts[0]).toMatchObject(want)
    expect(attempts.at(-1)).toMatchObject({ outcome: 'success' })
  })

  test('a name that does not exist: unreachable', async () => {
    const { delivery, attempts } = await engine.deliver('https://nothing.invalid/')
    expect(delivery).toMatchObject({ state: 'failed', attempts: 10 })
    expect(attempts).toHaveLength(10)
    expect(attempts[0]).toMatchObject({ outcome: 'unreachable', status: null, address: null })
    expect(attempts[0]?.error).toMatch(/^The name nothing\.invalid could not be resolved/)
  })
})

describe.concurrent('what never ends is ended at the deadline', () => {
  const noResponse = {
    outcome: 'timeout',
    status: null,
    error: 'There was no response within 1 second.',
  } as const
  const noEnd = {
    outcome: 'timeout',
    status: 200,
    error: 'The response did not finish within 1 second.',
  } as const

  test.each<{ what: string; answer: Answer; want: Result }>([
    { what: 'nothing', answer: 'hang', want: noResponse },
    { what: 'dripping headers', answer: drip('x: y\r\n', HEAD), want: noResponse },
    { what: 'a dripping status line', answer: drip('a', 'HTTP/1.1 200 '), want: noResponse },
    {
      what: 'dripping interim responses',
      answer: drip('HTTP/1.1 102 Processing\r\n\r\n'),
      want: noResponse,
    },
    { what: 'a status line without end', answer: flood('a', 'HTTP/1.1 200 '), want: noResponse },
    {
      what: 'a dripping body',
      answer: drip('.', `${HEAD}\r\n`),
      want: { ...noEnd, responseBody: expect.stringMatching(/^\.+$/) as unknown as string },
    },
    {
      what: 'dripping chunks',
      answer: drip('1\r\n.\r\n', `${HEAD}transfer-encoding: chunked\r\n\r\n`),
      want: noEnd,
    },
    {
      what: 'a body that stops',
      answer: says(`${HEAD}content-length: 10\r\n\r\nhello`),
      want: { ...noEnd, responseBody: 'hello' },
    },
    {
      what: 'a chunk size without end',
      answer: flood('a', `${HEAD}transfer-encoding: chunked\r\n\r\n5;`),
      want: noEnd,
    },
  ])('$what', async ({ answer, want }) => {
    await using receiver = await startReceiver({ answers: [answer, 204] })
    expectFailure(await engine.deliver(receiver.url), want)
    expect(receiver.requests).toHaveLength(2)
    await until(
      'the connection of the first attempt is closed',
      () => receiver.openConnections() <= 1,
    )
  })

  test('a TLS handshake', async ({ onTestFinished }) => {
    const authority = await newAuthority()
    await using receiver = await startReceiver({ tls: await authority.issue() })
    let first = true
    await using listener = await startListener({
      onConnection(socket) {
        if (first) socket.resume()
        else socket.pipe(connect(receiver.port, '127.0.0.1')).pipe(socket)
        first = false
      },
    })
    trust(authority, onTestFinished)
    expectFailure(await engine.deliver(`https://127.0.0.1:${listener.port}/`), {
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

  test('a look-up', async () => {
    await using names = await startNameServer(() => 'silence')
    const agent = guardedAgent([], names)
    const result = await send(agent, {
      url: 'https://name.test/',
      headers: {},
      body: Buffer.from('{}'),
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

describe('TLS', () => {
  let authority: Authority
  beforeAll(async () => {
    authority = await newAuthority()
    trust(authority, afterAll)
  })

  test('a certificate that is in order: success, and the address and each phase are on record', async () => {
    await using receiver = await startReceiver({ tls: await authority.issue() })
    const { attempts } = await engine.deliver(receiver.url)
    expect(attempts).toMatchObject([{ outcome: 'success', status: 204, address: '127.0.0.1' }])
    const { dns, connect, tls: handshake, first_byte, body } = attempts[0]?.phases ?? {}
    expect(dns).toBeNull()
    const sum = [connect, handshake, first_byte, body].reduce<number>(
      (total, ms) => total + (ms ?? Number.NaN),
      0,
    )
    expect(Math.abs(sum - (attempts[0]?.durationMs ?? 0))).toBeLessThan(1)
    expect(handshake).toBeGreaterThan(0)
  })

  const tomorrow = new Date(Date.now() + 86_400_000)
  const yesterday = new Date(Date.now() - 86_400_000)
  test.each<{
    what: string
    wanted?: CertificateOptions
    by: 'trusted' | 'unknown' | 'itself'
    error: RegExp
  }>([
    {
      what: 'expired',
      wanted: { notBefore: new Date(0), notAfter: yesterday },
      by: 'trusted',
      error: /has expired/,
    },
    {
      what: 'not valid yet',
      wanted: { notBefore: tomorrow, notAfter: new Date(Date.now() + 2e8) },
      by: 'trusted',
      error: /not valid yet/,
    },
    {
      what: 'for another host',
      wanted: { host: 'example.com' },
      by: 'trusted',
      error: /is not for 127\.0\.0\.1/,
    },
    {
      what: 'for another address',
      wanted: { host: '127.0.0.2' },
      by: 'trusted',
      error: /is not for 127\.0\.0\.1/,
    },
    { what: 'self-signed', by: 'itself', error: /is self-signed/ },
    { what: 'of an unknown authority', by: 'unknown', error: /authority that is not trusted/ },
  ])(
    'a certificate that is $what: unreachable, and no request is sent',
    async ({ wanted, by, error }) => {
      const issuer = by === 'unknown' ? await newAuthority() : authority
      await using receiver = await startReceiver({
        tls: by === 'itself' ? await newCertificate(wanted) : await issuer.issue(wanted),
      })
      const { delivery, attempts } = await engine.deliver(receiver.url)
      expect(delivery).toMatchObject({ state: 'failed', attempts: 10 })
      expect(attempts).toHaveLength(10)
      expect(attempts[0]).toMatchObject({
        outcome: 'unreachable',
        status: null,
        address: '127.0.0.1',
        error: expect.stringMatching(error),
      })
      expect(attempts[0]?.phases).toMatchObject({
        tls: expect.any(Number),
        first_byte: null,
        body: null,
      })
      expect(receiver.requests).toHaveLength(0)
    },
  )

  test('https to a port that speaks http: unreachable', async () => {
    await using receiver = await startReceiver()
    const { attempts } = await engine.deliver(receiver.url.replace('http:', 'https:'))
    expect(attempts).toHaveLength(10)
    expect(attempts[0]).toMatchObject({
      outcome: 'unreachable',
      error: 'The TLS handshake failed.',
    })
    expect(receiver.requests).toHaveLength(0)
  })

  test('http to a port that speaks TLS: unreachable', async () => {
    await using receiver = await startReceiver({ tls: await authority.issue() })
    const { attempts } = await engine.deliver(receiver.url.replace('https:', 'http:'))
    expect(attempts).toHaveLength(10)
    expect(attempts[0]).toMatchObject({ outcome: 'unreachable', status: null })
    expect(attempts[0]?.error).toMatch(
      /closed the connection before it responded|not valid HTTP\/1\.1/,
    )
    expect(receiver.requests).toHaveLength(0)
  })
})

test('many floods at once: memory stays flat, and no more is taken of a body than is kept', async () => {
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
        const { kind, answer } = floods[index % floods.length] ?? {
          kind: '',
          answer: { raw: () => undefined },
        }
        sent.push({ kind, socket })
        answer.raw(socket)
      },
    }),
  })
  const agent = guardedAgent([ipaddr.parseCIDR('127.0.0.0/8')])
  const request = { url: receiver.url, headers: {}, body: Buffer.from('{}'), timeoutMs: TIMEOUT_MS }
  const round = () => Promise.all(Array.from({ length: 50 }, () => send(agent, request)))
  await round()
  const before = process.memoryUsage().rss
  await round()
  await round()
  const grownBytes = process.memoryUsage().rss - before
  await agent.destroy()

  expect(grownBytes).toBeLessThan(200 * MIB)
  // The rest is what a loopback connection holds that nobody reads.
  const soonEnded = sent.filter(({ kind }) =>
    ['body', 'headers', 'interim responses'].includes(kind),
  )
  expect(new Set(soonEnded.map(({ kind }) => kind)).size).toBe(3)
  expect(Math.max(...soonEnded.map(({ socket }) => socket.bytesWritten))).toBeLessThan(16 * MIB)
})
