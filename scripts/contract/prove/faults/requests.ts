/** Faults in what the service takes and refuses: validation, access, conditions and idempotency. */
import type { Contract } from '../../../model/contract.ts'
import { sentSchema } from '../../record-words.ts'
import { readMaxRecordBytes } from '../../refusals.ts'
import { largerThan } from '../../value-limits.ts'
import { type ProxyResponse, withoutHeader } from '../faulty-proxy.ts'
import {
  firstResource,
  type Json,
  onAnyInput,
  onAnyQuery,
  onRequest,
  onSuccess,
  type SeededFault,
} from '../seeded-fault.ts'
import type { Keys } from './isolation.ts'

const asJson = (status: number, from: ProxyResponse, body: object): ProxyResponse => ({
  ...from,
  status,
  body: JSON.stringify(body),
})

const mapValues = (input: Json, change: (value: unknown) => unknown): Json =>
  Object.fromEntries(Object.entries(input).map(([name, value]) => [name, change(value)]))

export function validationFaults(contract: Contract): SeededFault[] {
  const { create, update, list } = firstResource(contract)
  const fault = (what: string, operation: SeededFault['operation'], by: SeededFault['by']) => ({
    category: 'validation' as const,
    what,
    operation,
    by,
  })
  return [
    fault(
      'ignores an unknown field',
      create,
      onAnyInput(create, ({ not_a_field: _, ...rest }) => rest),
    ),
    fault(
      'ignores an unknown query parameter',
      list,
      onAnyQuery(list, (query) => query.delete('not_a_parameter')),
    ),
    fault(
      'takes null for a field that needs a value',
      update,
      onAnyInput(update, (input) =>
        Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null)),
      ),
    ),
    fault(
      'takes a number as text',
      create,
      onAnyInput(create, (input) =>
        mapValues(input, (value) => (typeof value === 'number' ? String(value) : value)),
      ),
    ),
    fault(
      'takes empty text',
      create,
      onAnyInput(create, (input) => mapValues(input, (value) => (value === '' ? 'x' : value))),
    ),
    fault(
      'takes text that is too long',
      create,
      onAnyInput(create, (input) =>
        mapValues(input, (value) =>
          typeof value === 'string' && value.length === 201 ? value.slice(1) : value,
        ),
      ),
    ),
    fault(
      'takes an unknown option',
      create,
      onAnyInput(create, (input) =>
        mapValues(input, (value) => (value === 'none_of_these' ? undefined : value)),
      ),
    ),
    fault(
      'removes NUL',
      create,
      onAnyInput(create, (input) =>
        mapValues(input, (value) =>
          typeof value === 'string' ? value.replaceAll('\0', '') : value,
        ),
      ),
    ),
    fault('refuses text with emoji', create, {
      answer: (response, { body }) =>
        body.includes('😀')
          ? asJson(422, response, { message: 'Invalid.', errors: { text: ['is invalid.'] } })
          : {},
    }),
    fault('names no field of an invalid body', create, {
      answer: (response) =>
        response.status === 422
          ? { body: JSON.stringify({ message: 'Invalid.', errors: {} }) }
          : {},
    }),
    fault('names a wrong field of an invalid body', create, {
      answer: (response) =>
        response.status === 422
          ? { body: JSON.stringify({ message: 'Invalid.', errors: { body: ['is invalid.'] } }) }
          : {},
    }),
    fault(
      'ignores a query parameter given twice',
      list,
      onAnyQuery(list, (query) => {
        for (const name of new Set(query.keys())) query.set(name, query.get(name) ?? '')
      }),
    ),
    fault(
      'takes page 0',
      list,
      onAnyQuery(list, (query) => {
        for (const [name, value] of query) if (value === '0') query.set(name, '1')
      }),
    ),
  ]
}

export function sizeFaults(contract: Contract): SeededFault[] {
  const most = readMaxRecordBytes(contract)
  const create = contract.operations.find(
    (operation) =>
      operation.method === 'post' &&
      largerThan(most, sentSchema(contract, operation)) !== undefined,
  )
  if (!create) return []
  return [
    {
      category: 'validation',
      what: 'takes a record that is too large',
      operation: create,
      by: onRequest(create, ({ body }) =>
        Buffer.byteLength(body) > most ? { body: withShortText(body) } : {},
      ),
    },
  ]
}

function withShortText(body: string): string {
  return JSON.stringify(JSON.parse(body), (_, value) =>
    typeof value === 'string' ? value.slice(0, 100) : value,
  )
}

export function accessFaults(contract: Contract, { key, restrictedKey }: Keys): SeededFault[] {
  const { get, create, remove } = firstResource(contract)
  const guarded = contract.operations.find(
    ({ method, permission }) => method === 'get' && permission !== null,
  )
  const fault = (what: string, operation: SeededFault['operation'], by: SeededFault['by']) => ({
    category: 'access' as const,
    what,
    operation,
    by,
  })
  const authorization = `Bearer ${key}`
  const isRestricted = (headers: Record<string, string>) =>
    headers.authorization === `Bearer ${restrictedKey}`
  const withKey = (headers: Record<string, string>) => ({ headers: { ...headers, authorization } })
  return [
    fault('needs no key', get, {
      request: ({ headers }) => (headers.authorization ? {} : withKey(headers)),
    }),
    fault('takes any key', get, { request: ({ headers }) => withKey(headers) }),
    fault('takes Basic authentication', get, {
      request: ({ headers }) =>
        /^Basic/.test(headers.authorization ?? '') ? withKey(headers) : {},
    }),
    fault(
      'lets a Read Only key create',
      create,
      onRequest(create, ({ headers }) => (isRestricted(headers) ? withKey(headers) : {})),
    ),
    fault('lets a Read Only key delete', remove, {
      request: ({ headers, method }) =>
        method === 'DELETE' && isRestricted(headers) ? withKey(headers) : {},
    }),
    fault('refuses a Read Only key for reading', get, {
      answer: (response, { headers }) =>
        response.status === 200 && isRestricted(headers)
          ? asJson(403, response, { message: 'Forbidden.' })
          : {},
    }),
    fault('refuses a key, but does what it asked for', create, {
      async instead(request, forward) {
        const response = await forward(request)
        if (response.status !== 403) return response
        await forward({ ...request, ...withKey(request.headers) })
        return response
      },
    }),
    fault('answers 404 for 403', create, {
      answer: ({ status }) => (status === 403 ? { status: 404 } : {}),
    }),
    ...(guarded === undefined
      ? []
      : [
          fault('ignores a missing permission', guarded, {
            request: ({ headers }) => (isRestricted(headers) ? withKey(headers) : {}),
          }),
        ]),
  ]
}

/** Not too long. */
const isTag = (value: string | undefined): boolean => (value ?? '').length < 1000

export function conditionFaults(contract: Contract): SeededFault[] {
  const { get, create, update, remove } = firstResource(contract)
  const fault = (what: string, operation: SeededFault['operation'], by: SeededFault['by']) => ({
    category: 'conditions' as const,
    what,
    operation,
    by,
  })
  const without = (name: string, when: (value: string) => boolean): SeededFault['by'] => ({
    request: ({ headers }) =>
      isTag(headers[name]) && when(headers[name] ?? '')
        ? { headers: withoutHeader(headers, name) }
        : {},
  })
  const etag = (change: (tag: string) => string): SeededFault['by'] => ({
    answer: ({ headers }) =>
      headers.etag ? { headers: { ...headers, etag: change(headers.etag) } } : {},
  })
  return [
    fault(
      'ignores If-Match',
      update,
      without('if-match', () => true),
    ),
    fault(
      'ignores If-Match of a delete',
      remove,
      without('if-match', () => true),
    ),
    fault(
      'ignores If-None-Match',
      get,
      without('if-none-match', () => true),
    ),
    fault('refuses If-Match: *', update, {
      request: ({ headers }) =>
        headers['if-match'] === '*' ? { headers: { ...headers, 'if-match': '"none"' } } : {},
    }),
    fault('ignores a list in If-Match', update, {
      request: ({ headers }) =>
        headers['if-match']?.includes(',') ? { headers: { ...headers, 'if-match': '"none"' } } : {},
    }),
    fault('takes a weak tag in If-Match', update, {
      request: ({ headers }) => ({
        headers: headers['if-match']
          ? { ...headers, 'if-match': headers['if-match'].replaceAll('W/', '') }
          : headers,
      }),
    }),
    fault(
      'ignores a list in If-None-Match',
      get,
      without('if-none-match', (value) => value.includes(',')),
    ),
    fault(
      'ignores a weak tag in If-None-Match',
      get,
      without('if-none-match', (value) => value.startsWith('W/')),
    ),
    fault(
      'ignores If-None-Match: *',
      get,
      without('if-none-match', (value) => value === '*'),
    ),
    fault(
      'keeps the ETag after an update',
      update,
      etag(() => '"constant"'),
    ),
    fault(
      'changes the ETag with each request',
      get,
      etag((tag) => tag.replace(/"$/, `${Math.random().toString(36).slice(2)}"`)),
    ),
    fault(
      'sends another ETag to a create than to a get',
      create,
      onSuccess(create, ({ headers }) => ({
        headers: { ...headers, etag: '"first"' },
      })),
    ),
  ]
}

const isKey = (value: string | undefined): boolean => /^[!-~]{1,255}$/.test(value ?? '')

export function idempotencyFaults(contract: Contract): SeededFault[] {
  const { create } = firstResource(contract)
  const fault = (what: string, by: SeededFault['by']): SeededFault => ({
    category: 'idempotency',
    what,
    operation: create,
    by,
  })
  const failed = new Map<string, ProxyResponse>()
  const inFlight = new Set<string>()
  return [
    fault('ignores Idempotency-Key', {
      request: ({ headers }) =>
        isKey(headers['idempotency-key'])
          ? { headers: withoutHeader(headers, 'idempotency-key') }
          : {},
    }),
    fault('omits Idempotent-Replayed', {
      answer: ({ headers }) => ({ headers: withoutHeader(headers, 'idempotent-replayed') }),
    }),
    fault('repeats another body', {
      answer: ({ headers, body }) =>
        headers['idempotent-replayed']
          ? { body: body.replace(/"updated_at":"..../, '"updated_at":"1999') }
          : {},
    }),
    fault('takes another request with a used key', {
      answer: (response, { method, body }) =>
        response.status === 422 && method === 'POST' && body.endsWith(' ')
          ? { status: 201, headers: response.headers }
          : {},
      request: ({ body, headers }) =>
        body.endsWith(' ') ? { headers: withoutHeader(headers, 'idempotency-key') } : {},
    }),
    fault('stores the response of an error', {
      async instead(request, forward) {
        const key = request.headers['idempotency-key']
        if (key === undefined) return undefined
        const stored = failed.get(key)
        if (stored) return stored
        const response = await forward(request)
        if (response.status === 422) failed.set(key, response)
        return response
      },
    }),
    fault('creates twice when two requests come at once', {
      async instead(request, forward) {
        const key = request.headers['idempotency-key']
        if (key === undefined) return undefined
        const headers = inFlight.has(key)
          ? withoutHeader(request.headers, 'idempotency-key')
          : request.headers
        inFlight.add(key)
        return await forward({ ...request, headers }).finally(() => inFlight.delete(key))
      },
    }),
    fault(
      'marks a first response as a repeat',
      onSuccess(create, ({ headers }) => ({
        headers: { ...headers, 'idempotent-replayed': 'true' },
      })),
    ),
  ]
}
