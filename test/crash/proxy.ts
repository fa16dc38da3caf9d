/** Proxies in front of nodes and of PostgreSQL. */
import { Agent, createServer, request } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'

const POLL_MS = 100

export interface LoadBalancer extends AsyncDisposable {
  url: string
  /** Whether the node at this URL gets requests. */
  isReady(nodeUrl: string): boolean
}

/** A load balancer that keeps its connections to the nodes open. It sends requests only to nodes
 *  whose /readyz says so, and repeats no request: an error of a node is a 502. */
export async function startLoadBalancer(nodeUrls: string[]): Promise<LoadBalancer> {
  const agent = new Agent({ keepAlive: true })
  const ready = new Set<string>()
  let next = 0
  const poll = async (url: string): Promise<void> => {
    const isReady = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1_000) }).then(
      async (response) => (await response.text()) !== '' && response.ok,
      () => false,
    )
    if (isReady) ready.add(url)
    else ready.delete(url)
  }
  const timer = setInterval(() => nodeUrls.forEach(poll), POLL_MS)
  const server = createServer((incoming, outgoing) => {
    const candidates = nodeUrls.filter((url) => ready.has(url))
    const node = candidates[next++ % candidates.length]
    const fail = (status: number, text: string): void => {
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(status).end(text)
    }
    if (node === undefined) return fail(503, 'No node is ready')
    const { method, headers, url = '/' } = incoming
    const { connection: _, ...forwarded } = headers
    const upstream = request(node + url, { method, headers: forwarded, agent })
    upstream.on('error', (error) => fail(502, error.message))
    upstream.on('response', (response) => {
      const { connection: _, 'keep-alive': __, ...returned } = response.headers
      outgoing.writeHead(response.statusCode ?? 502, returned)
      response.on('error', () => outgoing.destroy())
      response.pipe(outgoing)
    })
    incoming.pipe(upstream)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    isReady: (nodeUrl) => ready.has(nodeUrl),
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      agent.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export interface TcpProxy extends AsyncDisposable {
  /** The URL with the port of the proxy. */
  url: string
  /** Closes all connections. */
  cut(): void
  /** Closes the next connection whose client sends `text` and, with it or later, a COMMIT: before
   *  the server gets the COMMIT, or after it has committed, and before the client gets the response. */
  cutCommitOf(text: string, when: CutTime): void
  /** From now on, each connection stops before it sends the first message with this text. */
  holdAt(text: string): void
  /** How many connections have stopped. */
  heldConnections(): number
  /** From now on until it is called with false, ends each session in the message that opens it. */
  endOpening(isEnding: boolean): void
}

/** ReadyForQuery and an ErrorResponse, see "54.7. Message Formats" in the manual of PostgreSQL. */
const READY = Buffer.from('Z\0\0\0\x05I')
const ENDED = newErrorResponse({
  S: 'FATAL',
  V: 'FATAL',
  C: '57P01',
  M: 'unexpected postmaster exit',
})

function newErrorResponse(fields: Record<string, string>): Buffer {
  const texts = Object.entries(fields).map(([code, text]) => `${code}${text}\0`)
  const body = Buffer.from(`${texts.join('')}\0`)
  const head = Buffer.from('E\0\0\0\0')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

export type CutTime = 'before' | 'after'

/** Forwards connections to the server at `url`. The proxy listens only after `afterMs`. */
export async function startTcpProxy(url: string, afterMs: number): Promise<TcpProxy> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let nextCut: { text: string; when: CutTime } | undefined
  let heldText: string | undefined
  let held = 0
  let isEnding = false
  const server = createTcpServer((incoming) => {
    const outgoing = connect(Number(target.port), target.hostname)
    let hasSentText = false
    incoming.on('data', (data) => {
      if (!nextCut) return
      hasSentText ||= data.includes(nextCut.text)
      if (!hasSentText || !data.includes('COMMIT;')) return
      const { when } = nextCut
      nextCut = undefined
      if (when === 'before') return void outgoing.destroy()
      outgoing.unpipe(incoming)
      outgoing.on('data', (response) => response.includes('COMMIT') && outgoing.destroy())
      outgoing.resume()
    })
    for (const [socket, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
    if (isEnding)
      outgoing.on('data', (chunk: Buffer) => {
        if (chunk.includes(READY)) incoming.end(Buffer.concat([chunk, ENDED]))
        else incoming.write(chunk)
      })
    else outgoing.pipe(incoming)
    incoming.on('data', (chunk: Buffer) => {
      if (heldText === undefined || !chunk.includes(heldText)) outgoing.write(chunk)
      else {
        held++
        incoming.pause()
      }
    })
  })
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  // Finds a free port.
  await listen(0)
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  const opening = setTimeout(() => listen(port), afterMs)
  const cut = (): void => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    url: Object.assign(new URL(url), { port: String(port) }).href,
    cut,
    cutCommitOf: (text, when) => {
      nextCut = { text, when }
    },
    holdAt(text) {
      heldText = text
    },
    heldConnections: () => held,
    endOpening(isEndingNow) {
      isEnding = isEndingNow
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(opening)
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
