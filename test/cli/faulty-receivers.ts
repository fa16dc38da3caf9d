/** Receivers on loopback that follow every rule of `check-receiver`, except for one fault. */
import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export interface Arrived {
  headers: IncomingMessage['headers']
  body: Buffer
}

/** The behaviour of a receiver. `CORRECT` follows the rules. */
interface Behaviour {
  /** The bytes that the receiver verifies. */
  signedBytes(body: Buffer): Buffer
  isSame(actual: string, expected: string): boolean
  isRecent(timestamp: string): boolean
  /** The headers whose signature the receiver verifies. */
  verifiedHeaders: ('x-service-signature' | 'webhook-signature')[]
  takesNextSecret: boolean
  /** The status for a wrong signature. */
  refusal: number
  maxBodyBytes: number
  /** Whether the receiver reads a body without `Content-Length`. */
  readsChunks: boolean
  survivesAbort: boolean
  isConcurrent: boolean
  /** The status for a verified delivery. `count` is 1 for the first request with its ID. */
  respond(delivery: Arrived, count: number): number
}

export interface Fault extends Partial<Behaviour> {
  name: string
  /** The IDs of the rules that the receiver breaks, recommendations included. */
  breaks: string[]
}

const CORRECT: Behaviour = {
  signedBytes: (body) => body,
  isSame: (actual, expected) => actual === expected,
  isRecent: (timestamp) => Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300,
  verifiedHeaders: ['x-service-signature', 'webhook-signature'],
  takesNextSecret: true,
  refusal: 403,
  maxBodyBytes: 1024 * 1024,
  readsChunks: true,
  survivesAbort: true,
  isConcurrent: true,
  respond: () => 204,
}

const hasWord = ({ body }: Arrived, ...words: string[]): boolean =>
  words.some((word) => body.toString().includes(word))

export const FAULTS: Fault[] = [
  {
    name: 'verifies nothing',
    isSame: () => true,
    breaks: ['missing-signature', 'wrong-signature', 'late-delivery'],
  },
  {
    name: 'accepts a missing signature',
    isSame: (actual, expected) => actual === '' || actual === expected,
    breaks: ['missing-signature'],
  },
  {
    name: 'compares only the beginning of the signature',
    isSame: (actual, expected) => actual !== '' && expected.startsWith(actual),
    breaks: ['wrong-signature'],
  },
  {
    name: 'responds 401',
    refusal: 401,
    breaks: ['missing-signature', 'wrong-signature', 'late-delivery'],
  },
  {
    name: 'verifies re-serialized JSON',
    signedBytes: reserialize,
    breaks: ['wrong-signature', 'raw-body'],
  },
  {
    name: 'responds 409 to a repeat',
    respond: (_, count) => (count === 1 ? 204 : 409),
    breaks: ['repeats'],
  },
  {
    name: 'responds 400 to an unknown type',
    respond: (delivery) => (hasWord(delivery, 'muster.checked') ? 400 : 204),
    breaks: ['what-is-new'],
  },
  {
    name: 'fails at some types',
    respond: (delivery) => (hasWord(delivery, 'export.failed', 'webhook.test') ? 500 : 204),
    breaks: ['event-types'],
  },
  {
    name: 'refuses unknown fields',
    respond: (delivery) => (hasWord(delivery, 'added') ? 422 : 204),
    breaks: ['what-is-new'],
  },
  { name: 'takes no large body', maxBodyBytes: 10_000, breaks: ['what-is-new'] },
  {
    name: 'redirects',
    respond: () => 308,
    breaks: [
      ...['accepts-post', 'aborted-upload', 'raw-body', 'repeats', 'event-types'],
      ...['what-is-new', 'chunked-body', 'next-secret', 'oversized-body', 'held-upload'],
    ],
  },
  { name: 'ends when an upload is aborted', survivesAbort: false, breaks: ['aborted-upload'] },
  { name: 'reads only Content-Length bytes', readsChunks: false, breaks: ['chunked-body'] },
  { name: 'has one secret', takesNextSecret: false, breaks: ['next-secret'] },
  { name: 'ignores the time', isRecent: () => true, breaks: ['late-delivery'] },
  {
    name: 'trusts an unsigned time',
    verifiedHeaders: ['x-service-signature'],
    breaks: ['late-delivery'],
  },
  {
    name: 'reads a body of any size',
    maxBodyBytes: Number.POSITIVE_INFINITY,
    breaks: ['oversized-body'],
  },
  { name: 'handles one request at a time', isConcurrent: false, breaks: ['held-upload'] },
]

function reserialize(body: Buffer): Buffer {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(body.toString())))
  } catch {
    return body
  }
}

/** `secrets`: the current signing secret and the next one. */
export async function startFaultyReceiver(
  secrets: [string, string],
  fault: Partial<Behaviour>,
): Promise<AsyncDisposable & { url: string }> {
  const behaviour = { ...CORRECT, ...fault }
  const sockets = new Set<Socket>()
  const counts = new Map<unknown, number>()
  let previous: Promise<unknown> = Promise.resolve()

  const respond = (delivery: Arrived): number => {
    const valid = secrets.slice(0, behaviour.takesNextSecret ? 2 : 1)
    const isSigned = valid.some((secret) => isSignedWith(secret, delivery, behaviour))
    if (!isSigned || !behaviour.isRecent(String(delivery.headers['webhook-timestamp'])))
      return behaviour.refusal
    const id = delivery.headers['webhook-id']
    counts.set(id, (counts.get(id) ?? 0) + 1)
    return behaviour.respond(delivery, counts.get(id) ?? 0)
  }
  const receive = async (request: IncomingMessage): Promise<number> => {
    const body = await readBody(request, behaviour)
    return body === 'too large' ? 413 : respond({ headers: request.headers, body })
  }
  const server = createServer((request, response) => {
    const received = behaviour.isConcurrent
      ? receive(request)
      : previous.then(() => receive(request))
    previous = received.catch(() => undefined)
    received.then(
      (status) => response.writeHead(status, { Location: '/' }).end(),
      // The upload was aborted.
      () => behaviour.survivesAbort || close(),
    )
  })
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      close()
    },
  }
}

async function readBody(
  request: IncomingMessage,
  { maxBodyBytes, readsChunks }: Behaviour,
): Promise<Buffer | 'too large'> {
  const chunks: Buffer[] = []
  let byteCount = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    byteCount += chunk.length
    if (byteCount <= maxBodyBytes) chunks.push(chunk)
  }
  if (byteCount > maxBodyBytes) return 'too large'
  const hasLength = request.headers['content-length'] !== undefined
  return Buffer.concat(hasLength || readsChunks ? chunks : [])
}

function isSignedWith(
  secret: string,
  { headers, body }: Arrived,
  { signedBytes, isSame, verifiedHeaders }: Behaviour,
): boolean {
  const bytes = signedBytes(body)
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const timed = createHmac('sha256', key)
    .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`)
    .update(bytes)
  const expected = {
    'x-service-signature': createHmac('sha256', secret).update(bytes).digest('hex'),
    'webhook-signature': `v1,${timed.digest('base64')}`,
  }
  return verifiedHeaders.every((name) => isSame(String(headers[name] ?? ''), expected[name]))
}
