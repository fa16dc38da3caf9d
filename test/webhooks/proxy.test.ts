/** Attempts through an outgoing proxy, and attempts with a client certificate. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SendResult } from '../../records/attempt.ts'
import { readConfig } from '../../server/config.ts'
import { readClientCertificate } from '../../webhooks/transport/client-certificate.ts'
import { guardedAgent } from '../../webhooks/transport/guarded-agent.ts'
import { send } from '../../webhooks/transport/send.ts'
import { startNameServer } from '../dns.ts'
import { until } from '../helpers.ts'
import { startListener, startReceiver } from '../receiver.ts'
import { type Authority, type Certificate, newAuthority, newCertificate } from '../tls.ts'
import { trust } from './hostile.ts'
import { cidrs, post } from './single-attempt.ts'

const PUBLIC = '93.184.216.34'

interface Proxy extends AsyncDisposable {
  url: URL
  /** The targets of the requests with their credentials. */
  requests: string[]
}

/** A proxy that connects to `port` on loopback, whatever IP address it is asked for. With a `status`,
 *  it refuses. */
async function startProxy(
  port: number,
  { status = 200, tls }: { status?: number; tls?: Certificate } = {},
): Promise<Proxy> {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  const server = tls ? createTlsServer(tls) : createServer()
  server.on('connect', ({ url = '', headers }: IncomingMessage, socket: Socket) => {
    requests.push([url, headers['proxy-authorization']].filter(Boolean).join(' '))
    socket.write(`HTTP/1.1 ${status} Proxy\r\n\r\n`)
    if (status !== 200) return void socket.end()
    const upstream = connect(port, '127.0.0.1')
    for (const each of [socket, upstream]) each.on('error', () => undefined)
    upstream.once('close', () => socket.destroy())
    socket.pipe(upstream).pipe(socket)
  })
  server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port: own } = server.address() as AddressInfo
  return {
    url: new URL(`${tls ? 'https' : 'http'}://127.0.0.1:${own}`),
    requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

let authority: Authority
beforeAll(async () => {
  authority = await newAuthority()
  return trust(authority)
})

describe('with a proxy', () => {
  async function sendBy(
    proxy: URL,
    url: string,
    options: { allow?: string; addresses?: string[]; timeoutMs?: number } = {},
  ): Promise<SendResult> {
    const { allow = '10.0.0.0/8', addresses = [PUBLIC], timeoutMs = 5_000 } = options
    await using names = await startNameServer(() => addresses)
    const agent = guardedAgent(cidrs(allow), { lookup: names.lookup, proxy })
    const result = await send(agent, { ...post, url, timeoutMs })
    await agent.destroy()
    return result
  }

  test.each(['http', 'https'])(
    'over %s: asks for the checked IP address, and TLS ends at the endpoint',
    async (protocol) => {
      await using receiver = await startReceiver({
        validate: false,
        tls: await authority.issue({ host: 'name.test' }),
      })
      const tls = protocol === 'https' ? await authority.issue() : undefined
      await using proxy = await startProxy(receiver.port, { tls })
      proxy.url.username = 'muster'
      proxy.url.password = 'p@ss'
      const result = await sendBy(proxy.url, 'https://name.test:8443/hooks')
      const ms = expect.any(Number)
      expect(result).toMatchObject({
        outcome: 'success',
        address: PUBLIC,
        phases: { dns: ms, connect: ms, tls: ms, first_byte: ms, body: ms },
      })
      const credentials = Buffer.from('muster:p@ss').toString('base64')
      expect(proxy.requests).toEqual([`${PUBLIC}:8443 Basic ${credentials}`])
      expect(receiver.requests).toMatchObject([
        { path: '/hooks', headers: { host: 'name.test:8443' } },
      ])
    },
  )

  test.each([
    ['https://name.test/', [PUBLIC, '10.1.1.1', '127.0.0.1']],
    ['https://name.test/', ['169.254.169.254']],
    ['https://127.0.0.1/', []],
    ['http://name.test/', [PUBLIC]],
  ])('%s with the IP addresses %j: blocked, and the proxy is not asked', async (url, addresses) => {
    await using proxy = await startProxy(9)
    expect(await sendBy(proxy.url, url, { addresses })).toMatchObject({ outcome: 'blocked' })
    expect(proxy.requests).toEqual([])
  })

  test('an IP address that the operator permits is reached directly', async () => {
    await using receiver = await startReceiver({ validate: false })
    await using proxy = await startProxy(receiver.port)
    const url = `http://name.test:${receiver.port}/`
    const options = { allow: '127.0.0.0/8', addresses: ['127.0.0.1'] }
    expect(await sendBy(proxy.url, url, options)).toMatchObject({
      outcome: 'success',
      address: '127.0.0.1',
    })
    await using secure = await startReceiver({ validate: false, tls: await authority.issue() })
    expect(await sendBy(proxy.url, secure.url, options)).toMatchObject({ outcome: 'success' })
    expect(proxy.requests).toEqual([])
  })

  test('a proxy that refuses, is away or is silent: the delivery log says so, without its place', async () => {
    await using refusing = await startProxy(9, { status: 403 })
    await using silent = await startListener()
    const url = `https://${PUBLIC}/`
    expect(await sendBy(refusing.url, url)).toMatchObject({
      outcome: 'unreachable',
      address: null,
      error: 'The outgoing proxy refused the connection (403).',
    })
    expect(await sendBy(new URL('http://127.0.0.1:9'), url)).toMatchObject({
      outcome: 'unreachable',
      error: 'The outgoing proxy could not be reached (ECONNREFUSED).',
    })
    const silence = new URL(`http://127.0.0.1:${silent.port}`)
    expect(await sendBy(silence, url, { timeoutMs: 300 })).toMatchObject({
      outcome: 'timeout',
      error: `No connection to ${PUBLIC} was established within 0.3 seconds.`,
    })
    await until('the connection is closed', () => silent.openConnections() === 0)
  })

  test('an endpoint that cuts the tunnel before the handshake: unreachable', async () => {
    await using endpoint = await startListener({
      onConnection: (socket) => socket.resetAndDestroy(),
    })
    await using proxy = await startProxy(endpoint.port)
    expect(await sendBy(proxy.url, 'https://name.test/')).toMatchObject({ outcome: 'unreachable' })
  })
})

test('a client certificate is shown to an endpoint that asks for one', async () => {
  const tls = await authority.issue()
  let subject: unknown
  const server = createTlsServer(
    { ...tls, requestCert: true, rejectUnauthorized: true, ca: authority.cert },
    ({ socket }, response) => {
      subject = (socket as TLSSocket).getPeerCertificate().subject
      response.end()
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `https://127.0.0.1:${port}/`
  const clientCertificate = await authority.issue({ host: 'muster.test' })
  for (const [options, outcome] of [
    [{ clientCertificate }, 'success'],
    [{}, 'unreachable'],
  ] as const) {
    const agent = guardedAgent(cidrs('127.0.0.0/8'), options)
    expect(await send(agent, { ...post, url })).toMatchObject({ outcome })
    await agent.destroy()
  }
  expect(subject).toMatchObject({ CN: 'muster.test' })
  await new Promise((resolve) => server.close(resolve))
})

test('the settings: files that do not fit together, one file alone and other URLs are refused', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-'))
  const [one, other] = [await newCertificate(), await newCertificate()]
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  await writeFile(cert, one.cert)
  await writeFile(key, one.key)
  expect(readClientCertificate({ cert, key })).toEqual(one)
  await writeFile(key, other.key)
  expect(() => readClientCertificate({ cert, key })).toThrow(
    /cannot be used: .*key values mismatch/,
  )
  expect(() => readClientCertificate({ cert, key: `${key}.away` })).toThrow('ENOENT')
  await rm(folder, { recursive: true })

  const read = (environment: Record<string, string>) =>
    readConfig({ DATA_DIR: 'unused', ...environment }, { createsFiles: false })
  expect(() => read({ WEBHOOK_CLIENT_CERT_FILE: cert })).toThrow('need each other')
  for (const url of ['proxy:3128', 'socks5://proxy:1080', 'http://proxy/path'])
    expect(() => read({ WEBHOOK_PROXY: url })).toThrow('WEBHOOK_PROXY must be an http or https URL')
  expect(read({ WEBHOOK_PROXY: 'http://proxy:3128' }).webhookProxy?.host).toBe('proxy:3128')
})
