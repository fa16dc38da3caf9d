/** Builds hooks of faulty-proxy.ts that several faults use, and helps to write other hooks. */
import { bodies } from '../../generated/validators.js'
import { matchesTemplate } from '../../scripts/contract/record-kinds.ts'
import { type JsonObject, parseJson } from '../../scripts/model/json.ts'
import type { Operation } from '../../scripts/model/operations.ts'
import type { Forward, ProxyHooks, ProxyRequest, ProxyResponse } from './faulty-proxy.ts'

/** Changes the successful responses of the operation. */
export function onSuccess(
  operation: Operation,
  change: (response: ProxyResponse, request: ProxyRequest) => Partial<ProxyResponse>,
): ProxyHooks {
  return {
    changeResponse: (response, request) =>
      response.status === operation.success.status && isFor(operation, request)
        ? change(response, request)
        : {},
  }
}

/** Changes the body of the operation's successful responses. */
export function onBody(
  operation: Operation,
  // biome-ignore lint/suspicious/noExplicitAny: each operation has bodies of another shape.
  change: (body: any, request: ProxyRequest) => unknown,
): ProxyHooks {
  return onSuccess(operation, ({ body }, request) => ({
    body: JSON.stringify(change(JSON.parse(body), request)),
  }))
}

/** Changes the headers of all responses. Undefined removes a header. */
export function onHeaders(
  change: (headers: Record<string, string>) => Record<string, string | undefined>,
): ProxyHooks {
  return {
    changeResponse: ({ headers }) => {
      const changed = Object.entries({ ...headers, ...change(headers) })
      return {
        headers: Object.fromEntries(
          changed.filter((entry): entry is [string, string] => entry[1] !== undefined),
        ),
      }
    },
  }
}

/** Changes the operation's requests. */
export function onRequest(
  operation: Operation,
  change: (request: ProxyRequest) => Partial<ProxyRequest>,
): ProxyHooks {
  return { changeRequest: (request) => (isFor(operation, request) ? change(request) : {}) }
}

/** Changes the JSON object in the body of the operation's requests, also if the body breaks the
 *  contract. */
export function onAnyInput(
  operation: Operation,
  change: (input: JsonObject) => JsonObject,
): ProxyHooks {
  return onRequest(operation, ({ body }) => {
    const input = parseJson(body)
    if (typeof input !== 'object' || input === null || Array.isArray(input)) return {}
    // Keeps a space at the end: oracles/idempotency.ts adds one, to send another body with the
    // same key.
    const [space = ''] = /\s*$/.exec(body) ?? []
    return { body: JSON.stringify(change(input as JsonObject)) + space }
  })
}

/** Changes only valid bodies, like a service that first validates the body and then does something
 *  wrong. */
export function onInput(
  operation: Operation,
  change: (input: JsonObject) => JsonObject,
): ProxyHooks {
  return onAnyInput(operation, (input) => (isValidInput(operation, input) ? change(input) : input))
}

/** Changes the query of the operation's requests, also of invalid ones. */
export function onAnyQuery(
  operation: Operation,
  change: (query: URLSearchParams) => void,
): ProxyHooks {
  return onRequest(operation, (request) => changeQuery(request, change))
}

/** Changes only valid queries, like a service that first validates the query. The hook sends each
 *  request unchanged, and again with the changed query if the first request succeeds. */
export function onQuery(
  operation: Operation,
  change: (query: URLSearchParams) => void,
): ProxyHooks {
  return {
    async respond(request, forward) {
      if (!isFor(operation, request)) return undefined
      const response = await forward(request)
      return response.status === operation.success.status
        ? await forward({ ...request, ...changeQuery(request, change) })
        : response
    },
  }
}

/** The contract tests send this invalid encoding, which URLSearchParams would correct. */
const BROKEN_ENCODING = '%E0%A4%A'

function changeQuery(
  { path }: ProxyRequest,
  change: (query: URLSearchParams) => void,
): Partial<ProxyRequest> {
  if (path.includes(BROKEN_ENCODING)) return {}
  const query = queryOf(path)
  change(query)
  const text = query.toString()
  return { path: text === '' ? pathOf(path) : `${pathOf(path)}?${text}` }
}

export function isFor(operation: Operation, { method, path }: { method: string; path: string }) {
  return method === operation.method.toUpperCase() && matchesTemplate(operation.path, pathOf(path))
}

/** Whether the contract permits the body. */
export function isValidInput({ id }: Operation, input: JsonObject): boolean {
  // Validators write defaults into their argument.
  return bodies[id as keyof typeof bodies]?.(structuredClone(input)) === true
}

/** A GET of the record that the request is about. */
export function readRecord(request: ProxyRequest, forward: Forward): Promise<ProxyResponse> {
  const { 'content-type': _, 'if-match': __, ...headers } = request.headers
  return forward({ ...request, method: 'GET', body: '', headers })
}

export function pathOf(path: string): string {
  return path.split('?')[0] ?? ''
}

export function queryOf(path: string): URLSearchParams {
  return new URLSearchParams(path.split('?')[1] ?? '')
}

/** Changes the ID at the end of the path to one that no record has. `path` can also be the ID
 *  alone. */
export function withOtherId(path: unknown): string {
  return `${String(path).slice(0, -4)}0000`
}

export function withoutHeaders(
  headers: Record<string, string>,
  ...names: string[]
): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
}

/** The response `from` with another status and a JSON body. */
export function asJson(status: number, from: ProxyResponse, body: object): ProxyResponse {
  return { ...from, status, body: JSON.stringify(body) }
}
