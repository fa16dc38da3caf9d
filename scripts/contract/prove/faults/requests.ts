/** Faults in access, conditions and idempotency. */
import type { Contract } from '../../../model/contract.ts'
import { asJson, type ProxyResponse, withoutHeader } from '../faulty-proxy.ts'
import { firstResource, onRequest, onSuccess, type SeededFault } from '../seeded-fault.ts'
import type { Keys } from './isolation.ts'

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
