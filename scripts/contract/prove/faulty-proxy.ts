/** A proxy that breaks the contract of the service behind it. It shows which faults the contract
 *  tests find. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ProxyRequest {
  method: string
  /** Path and query. */
  path: string
  /** By lower-case name. */
  headers: Record<string, string>
  body: string
}

export interface ProxyResponse {
  status: number
  /** By lower-case name. */
  headers: Record<string, string>
  body: string
}

export type Forward = (request: ProxyRequest) => Promise<ProxyResponse>

/** Each function is optional. They run in this order. */
export interface Fault {
  request?(request: ProxyRequest): Partial<ProxyRequest>
  /** Responds instead of the service. Undefined: the service responds. */
  instead?(
    request: ProxyRequest,
    forward: Forward,
  ): ProxyResponse | undefined | Promise<ProxyResponse | undefined>
  answer?(response: ProxyResponse, request: ProxyRequest): Partial<ProxyResponse>
}

/** `target` is the URL of the service. */
export async function startFaultyProxy(
  target: string,
  { request, instead, answer }: Fault,
): Promise<{ url: string } & AsyncDisposable> {
  const send: Forward = (changed) => forward(target, changed)
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const {
      host: _,
      connection: __,
      'content-length': ___,
      'transfer-encoding': ____,
      ...headers
    } = incoming.headers
    const { method = '', url = '' } = incoming
    const original: ProxyRequest = {
      method,
      path: url,
      headers: headers as Record<string, string>,
      body: Buffer.concat(chunks).toString(),
    }
    const changedRequest = { ...original, ...request?.(original) }
    const response = (await instead?.(changedRequest, send)) ?? (await send(changedRequest))
    const changed = { ...response, ...answer?.(response, changedRequest) }
    outgoing.writeHead(changed.status, changed.headers).end(changed.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function forward(
  target: string,
  { method, path, headers, body }: ProxyRequest,
): Promise<ProxyResponse> {
  const response = await fetch(target + path, {
    method,
    headers,
    body: body === '' ? undefined : body,
    redirect: 'manual',
  }).catch(() => undefined)
  if (response === undefined) return { status: 502, headers: {}, body: '' }
  const text = await response.text()
  const {
    'content-length': _,
    connection: __,
    'keep-alive': ___,
    'transfer-encoding': ____,
    ...forwarded
  } = Object.fromEntries(response.headers)
  return { status: response.status, headers: forwarded, body: text }
}

export const withoutHeader = (
  headers: Record<string, string>,
  name: string,
): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name))

/** `{}` for text that is not JSON. */
export const json = (text: string): Record<string, unknown> => {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

export const serverError: ProxyResponse = {
  status: 500,
  headers: { 'content-type': 'application/json' },
  body: '{"message":"Oops"}',
}

export const noContent: ProxyResponse = {
  status: 204,
  headers: {
    'x-request-id': 'x',
    'x-ratelimit-limit': '1',
    'x-ratelimit-remaining': '1',
    'x-ratelimit-reset': '1',
    ratelimit: '"default";r=1;t=1',
    'ratelimit-policy': '"default";q=1;w=60',
  },
  body: '',
}

/** `from` with another status and body. */
export const asJson = (status: number, from: ProxyResponse, body: object): ProxyResponse => ({
  ...from,
  status,
  body: JSON.stringify(body),
})
