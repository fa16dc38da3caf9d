/** A proxy that breaks the contract of the service behind it, to measure which faults the contract
 *  tests find. */
import { text } from 'node:stream/consumers'
import {
  type LoopbackServer,
  startLoopbackServer,
} from '../../scripts/contract/deliveries/loopback-server.ts'
import { type JsonObject, parseJson } from '../../scripts/model/json.ts'

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

/** Hooks run in this order. `changeRequest` and `changeResponse` return the parts to replace. */
export interface ProxyHooks {
  changeRequest?(request: ProxyRequest): Partial<ProxyRequest>
  /** Responds instead of the service. Undefined: the service responds. */
  respond?(
    request: ProxyRequest,
    forward: Forward,
  ): ProxyResponse | undefined | Promise<ProxyResponse | undefined>
  changeResponse?(response: ProxyResponse, request: ProxyRequest): Partial<ProxyResponse>
}

/** `target` is the URL of the service. */
export function startFaultyProxy(
  target: string,
  { changeRequest, respond, changeResponse }: ProxyHooks,
): Promise<LoopbackServer> {
  const send: Forward = (request) => forward(target, request)
  return startLoopbackServer(async (incoming, outgoing) => {
    const { method = '', url = '' } = incoming
    const original: ProxyRequest = {
      method,
      path: url,
      headers: omit(incoming.headers as Record<string, string>, CONNECTION_HEADERS),
      body: await text(incoming),
    }
    const request = { ...original, ...changeRequest?.(original) }
    const response = (await respond?.(request, send)) ?? (await send(request))
    const changed = { ...response, ...changeResponse?.(response, request) }
    outgoing.writeHead(changed.status, changed.headers).end(changed.body)
  })
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
  return {
    status: response.status,
    headers: omit(Object.fromEntries(response.headers), CONNECTION_HEADERS),
    body: await response.text(),
  }
}

/** Headers that the proxy does not pass on: its connections to the client and to the service each
 *  have their own. */
const CONNECTION_HEADERS = [
  ...['host', 'connection', 'keep-alive', 'transfer-encoding'],
  ...['content-length', 'content-encoding'],
]

function omit(headers: Record<string, string>, names: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
}

export const serverError: ProxyResponse = {
  status: 500,
  headers: { 'content-type': 'application/json' },
  body: '{"message":"Oops"}',
}

/** The JSON object that the text contains. `{}` for any other text. */
export function parseObject(text: string): JsonObject {
  const value = parseJson(text)
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : {}
}
