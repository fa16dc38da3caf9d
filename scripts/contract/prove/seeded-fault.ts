/** Faults that `muster contract --prove` puts between the contract tests and the service. */
import { Refused } from '../../../errors.ts'
import { bodies } from '../../../generated/validators.js'
import type { Contract } from '../../model/contract.ts'
import type { Operation } from '../../model/operations.ts'
import { listRecordOperations, type RecordOperations } from '../record-operations.ts'
import type { DeliveryFault } from './delivery-proxy.ts'
import type { Fault, ProxyRequest, ProxyResponse } from './faulty-proxy.ts'

export type Category =
  | 'protocol'
  | 'headers'
  | 'validation'
  | 'access'
  | 'conditions'
  | 'idempotency'
  | 'lists'
  | 'stored values'
  | 'sequences'
  | 'isolation'
  | 'events'
  | 'deliveries'
  | 'signatures'

export interface SeededFault {
  category: Category
  /** What the service does wrong, for example `answers 200 instead of 201`. */
  what: string
  /** The operation that is tested. */
  operation: Operation
  /** Changes the requests and the responses. */
  by: Fault
  /** Changes the deliveries. */
  deliver?: DeliveryFault
}

export type Resource = RecordOperations & { list: Operation }

/** The kinds of records that can be listed, created, read, updated and deleted. */
export function listResources(contract: Contract): Resource[] {
  return listRecordOperations(contract).filter((kind): kind is Resource => kind.list !== undefined)
}

/** Throws Refused if the contract has no such kind of record. */
export function firstResource(contract: Contract): Resource {
  const [first] = listResources(contract)
  if (!first)
    throw new Refused(
      'Faults need records that can be listed, created, read, updated and deleted. The contract has none.',
    )
  return first
}

export type Json = Record<string, unknown>

export function isFor(operation: Operation, { method, path }: { method: string; path: string }) {
  const template = operation.path.replace(/\{[^}]+\}/g, '[^/]+')
  return method === operation.method.toUpperCase() && new RegExp(`^${template}$`).test(pathOf(path))
}

export function pathOf(path: string): string {
  return path.split('?')[0] ?? ''
}

/** Changes the successful responses of the operation. */
export function onSuccess(
  operation: Operation,
  change: (response: ProxyResponse, request: ProxyRequest) => Partial<ProxyResponse>,
): Fault {
  return {
    answer: (response, request) =>
      response.status === operation.success.status && isFor(operation, request)
        ? change(response, request)
        : {},
  }
}

/** Changes the body of the operation's successful responses. */
export function onBody(
  operation: Operation,
  // biome-ignore lint/suspicious/noExplicitAny: a body has the shape of the operation that the fault is for.
  change: (body: any, request: ProxyRequest) => unknown,
): Fault {
  return onSuccess(operation, ({ body }, request) => ({
    body: JSON.stringify(change(JSON.parse(body), request)),
  }))
}

/** Changes the headers of all responses. Undefined removes a header. */
export function onHeaders(
  change: (
    headers: Record<string, string>,
    request: ProxyRequest,
  ) => Record<string, string | undefined>,
): Fault {
  return {
    answer: ({ headers }, request) => {
      const changed = Object.entries({ ...headers, ...change(headers, request) })
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
): Fault {
  return { request: (request) => (isFor(operation, request) ? change(request) : {}) }
}

/** Changes the JSON object that the operation's requests send, also one that breaks the
 *  contract. */
export function onAnyInput(operation: Operation, change: (input: Json) => Json): Fault {
  return onRequest(operation, ({ body }) => {
    const input = parseObject(body)
    // The contract tests pad a body with spaces to its largest size.
    const [space = ''] = /\s*$/.exec(body) ?? []
    return input ? { body: JSON.stringify(change(input)) + space } : {}
  })
}

/** Changes only valid input, like a service that first validates it and then does something
 *  wrong. */
export function onInput(operation: Operation, change: (input: Json) => Json): Fault {
  const isValid = bodies[operation.id as keyof typeof bodies]
  return onAnyInput(operation, (input) =>
    isValid?.(structuredClone(input)) ? change(input) : input,
  )
}

function parseObject(body: string): Json | undefined {
  try {
    const input = JSON.parse(body)
    return input !== null && typeof input === 'object' && !Array.isArray(input) ? input : undefined
  } catch {
    return undefined
  }
}

/** Changes the query of the operation's requests, also of invalid ones. */
export function onAnyQuery(operation: Operation, change: (query: URLSearchParams) => void): Fault {
  return onRequest(operation, (request) => changeQuery(request, change))
}

/** Changes only valid queries, like a service that first validates them: it sends each request
 *  unchanged, and again with the changed query if that succeeded. */
export function onQuery(operation: Operation, change: (query: URLSearchParams) => void): Fault {
  return {
    async instead(request, forward) {
      if (!isFor(operation, request)) return undefined
      const response = await forward(request)
      return response.status === operation.success.status
        ? await forward({ ...request, ...changeQuery(request, change) })
        : response
    },
  }
}

function changeQuery(
  { path }: ProxyRequest,
  change: (query: URLSearchParams) => void,
): Partial<ProxyRequest> {
  if (path.includes(BROKEN_ENCODING)) return {}
  const query = new URLSearchParams(path.split('?')[1] ?? '')
  change(query)
  const text = query.toString()
  return { path: text === '' ? pathOf(path) : `${pathOf(path)}?${text}` }
}

/** The contract tests send this invalid encoding, which URLSearchParams would correct. */
const BROKEN_ENCODING = '%E0%A4%A'
