/** A process that receives POSTs on 127.0.0.1 to 127.0.0.100 and responds with 204. */
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createListener } from 'node:net'
import { serveCalls, sharedNowMs } from './child.ts'

const ORIGINS = 100

interface Arrival {
  /** When the first POST arrived, in milliseconds of the shared clock. */
  at: number
  /** How often the delivery was POSTed. */
  posts: number
  /** The body of the first POST. */
  chunks: Buffer[]
}

/** By the ID of the delivery. */
const arrivals = new Map<string, Arrival>()

/** How long each IP address takes to respond. */
const responseMs = new Map<string, number>()
/** IP addresses that close the connection after each response. */
const closing = new Set<string>()
let isFirstPostRefused = false

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const { localAddress = '' } = request.socket
  const waitMs = responseMs.get(localAddress) ?? 0
  if (waitMs === Number.POSITIVE_INFINITY) return
  if (closing.has(localAddress)) response.setHeader('Connection', 'close')
  const id = String(request.headers['webhook-id'])
  const known = arrivals.get(id)
  const arrival = known ?? { at: sharedNowMs(), posts: 0, chunks: [] }
  arrival.posts++
  if (known) request.resume()
  else {
    arrivals.set(id, arrival)
    request.on('data', (chunk: Buffer) => arrival.chunks.push(chunk))
  }
  const respond = (): void =>
    void response.writeHead(isFirstPostRefused && !known ? 500 : 204).end()
  request.on('end', () => (waitMs > 0 ? setTimeout(respond, waitMs) : respond()))
})

const ipOf = (index: number): string => `127.0.0.${index + 1}`

const calls = {
  /** Returns the origins, for example `http://127.0.0.7:40123`. */
  async listen(): Promise<string[]> {
    let port = 0
    const origins: string[] = []
    for (let index = 0; index < ORIGINS; index++) {
      const host = ipOf(index)
      const listener = createListener((socket) => server.emit('connection', socket))
      await new Promise<void>((resolve, reject) =>
        listener.once('error', reject).listen(port, host, resolve),
      )
      port = (listener.address() as AddressInfo).port
      origins.push(`http://${host}:${port}`)
    }
    return origins
  },
  /** From now on the origin at this index accepts requests and never responds. */
  hang: (index: number): void => calls.respondAfter(index, Number.POSITIVE_INFINITY),
  /** From now on the origin at this index takes this long to respond. */
  respondAfter: (index: number, ms: number): void => {
    responseMs.set(ipOf(index), ms)
  },
  /** From now on the origin at this index closes the connection after each response. */
  close: (index: number): void => {
    closing.add(ipOf(index))
  },
  /** Responds with 500 to the first POST of each delivery. */
  failFirst: (): void => {
    isFirstPostRefused = true
  },
  /** Forgets all arrivals. */
  reset: () => arrivals.clear(),
  /** The number of distinct deliveries, and of repeated POSTs. */
  summary() {
    const all = [...arrivals.values()]
    const posts = all.reduce((sum, arrival) => sum + arrival.posts, 0)
    return { arrived: all.length, repeated: posts - all.length }
  },
  /** When the first POST of each delivery arrived, by the ID of the delivery's record. */
  arrivalTimes(): Map<string, number[]> {
    const times = new Map<string, number[]>()
    for (const { at, chunks } of arrivals.values()) {
      const { id } = JSON.parse(Buffer.concat(chunks).toString()).resource
      const known = times.get(id)
      // The records of a large backlog have one ID.
      if (known) known.push(at)
      else times.set(id, [at])
    }
    return times
  },
}

export type Sink = typeof calls
serveCalls(calls)
