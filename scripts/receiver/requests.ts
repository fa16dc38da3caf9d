/** The ways in which `check-receiver` sends a delivery. Each request has a connection of its
 *  own. */
import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import type { Delivery } from '../words/deliveries.ts'

/** Returns the status of the response, and throws if there is none. Null: the receiver closed the
 *  connection, and `tolerateClose` permits that. */
export type Send = (url: string, delivery: Delivery, signal: AbortSignal) => Promise<number | null>

const CHUNK_BYTES = 256 * 1024
/** The pause after an aborted upload. If the abort crashes the receiver, its process has ended
 *  after this pause, and connections are refused. */
const CRASH_MS = 500

export async function post(
  url: string,
  { headers, body }: Delivery,
  signal: AbortSignal,
): Promise<number> {
  return await sendBody(url, headers, body, signal)
}

/** Posts the delivery with `Transfer-Encoding: chunked` and without `Content-Length`, in at least
 *  two chunks. */
export async function postChunked(
  url: string,
  { headers, body }: Delivery,
  signal: AbortSignal,
): Promise<number> {
  return await sendBody(url, headers, Readable.from(splitBody(Buffer.from(body))), signal)
}

/** Posts the delivery twice at the same time. Returns the higher status. */
export async function postTwice(
  url: string,
  delivery: Delivery,
  signal: AbortSignal,
): Promise<number> {
  return Math.max(
    ...(await Promise.all([post(url, delivery, signal), post(url, delivery, signal)])),
  )
}

/** Returns a `Send` that returns null if the receiver closes the connection. A receiver may do so
 *  before it has read a large body. */
export function tolerateClose(send: Send): Send {
  return async (url, delivery, signal) => {
    try {
      return await send(url, delivery, signal)
    } catch (error) {
      if (isClosed(error)) return null
      throw error
    }
  }
}

/** Closes a connection in the middle of an upload, then posts the delivery. */
export async function postAfterAbort(
  url: string,
  delivery: Delivery,
  signal: AbortSignal,
): Promise<number> {
  const upload = await startUpload(url, delivery, signal)
  upload.destroy()
  await delay(CRASH_MS)
  return await post(url, delivery, signal)
}

/** Posts the delivery while another connection has sent half of an upload. */
export async function postBesideUpload(
  url: string,
  delivery: Delivery,
  signal: AbortSignal,
): Promise<number> {
  const upload = await startUpload(url, delivery, signal)
  try {
    return await post(url, delivery, signal)
  } finally {
    upload.destroy()
  }
}

async function sendBody(
  url: string,
  headers: Record<string, string>,
  body: string | Readable,
  signal: AbortSignal,
): Promise<number> {
  const response = await request(url, { method: 'POST', headers, body, signal, reset: true })
  await response.body.dump()
  return response.statusCode
}

/** Sends the headers and half of the body. */
async function startUpload(
  url: string,
  { headers, body: text }: Delivery,
  signal: AbortSignal,
): Promise<ClientRequest> {
  const body = Buffer.from(text)
  const connect = url.startsWith('https:') ? httpsRequest : httpRequest
  const upload = connect(url, {
    method: 'POST',
    headers: { ...headers, 'content-length': body.length },
    agent: false,
    signal,
  })
  await new Promise<void>((resolve, reject) => {
    // The listener is still needed after the promise has resolved: an unhandled error of `destroy`
    // would end this process.
    upload.on('error', reject)
    upload.write(body.subarray(0, body.length / 2), (error) => (error ? reject(error) : resolve()))
  })
  return upload
}

function* splitBody(body: Buffer): Generator<Buffer> {
  const chunkBytes = Math.min(CHUNK_BYTES, Math.ceil(body.length / 2))
  for (let start = 0; start < body.length; start += chunkBytes)
    yield body.subarray(start, start + chunkBytes)
}

function isClosed(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(
    (error as NodeJS.ErrnoException).code ?? '',
  )
}
