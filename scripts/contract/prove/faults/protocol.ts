/** Faults of statuses, media types, shapes, methods and headers. */
import type { Contract } from '../../../model/contract.ts'
import { listOptionalFields } from '../../response-fields.ts'
import { json, noContent, withoutHeader } from '../faulty-proxy.ts'
import {
  firstResource,
  isFor,
  onBody,
  onHeaders,
  onRequest,
  onSuccess,
  pathOf,
  type SeededFault,
} from '../seeded-fault.ts'

const HOUR_SECONDS = 3600

export function protocolFaults(contract: Contract): SeededFault[] {
  const { create, get, remove, list } = firstResource(contract)
  const fault = (what: string, operation: SeededFault['operation'], by: SeededFault['by']) => ({
    category: 'protocol' as const,
    what,
    operation,
    by,
  })
  const success = create.success.status
  return [
    fault(
      'answers 200 to a create',
      create,
      onSuccess(create, () => ({ status: 200 })),
    ),
    fault(
      'answers 200 to a delete',
      remove,
      onSuccess(remove, () => ({ status: 200 })),
    ),
    fault('answers 418 for 404', get, {
      answer: ({ status }) => (status === 404 ? { status: 418 } : {}),
    }),
    fault('answers 400 for 422', create, {
      answer: ({ status }) => (status === 422 ? { status: 400 } : {}),
    }),
    fault('answers 500 to the longest text', create, {
      instead: ({ body }) =>
        Object.values(json(body)).some((value) => String(value).length >= 200)
          ? { status: 500, headers: { 'content-type': 'application/json' }, body: '{"message":""}' }
          : undefined,
    }),
    fault(
      'sends text/html',
      get,
      onSuccess(get, ({ headers }) => ({
        headers: { ...headers, 'content-type': 'text/html' },
      })),
    ),
    fault(
      'adds a charset to the media type',
      get,
      onSuccess(get, ({ headers }) => ({
        headers: { ...headers, 'content-type': 'application/json; charset=utf-8' },
      })),
    ),
    fault(
      'omits a required field',
      get,
      onBody(get, (record) => {
        const { [Object.keys(record).at(-1) ?? '']: _, ...others } = record
        return others
      }),
    ),
    fault(
      'sends a number as text',
      list,
      onBody(list, (page) => ({
        ...page,
        meta: { ...page.meta, total: String(page.meta?.total) },
      })),
    ),
    fault('shows the stack of an error', create, {
      answer: ({ status, body }) =>
        status >= 400 ? { body: JSON.stringify({ ...json(body), stack: 'Error: at x.js:1' }) } : {},
    }),
    fault('omits the message of an error', get, {
      answer: ({ status, body }) =>
        status === 404 ? { body: JSON.stringify({ ...json(body), message: undefined }) } : {},
    }),
    fault('supports an undocumented method', get, {
      instead: ({ method, path }) =>
        method === 'PUT' && isFor(get, { method: 'GET', path }) ? noContent : undefined,
    }),
    fault(
      'omits Allow',
      get,
      onHeaders(() => ({ allow: undefined })),
    ),
    fault('refuses OPTIONS', get, {
      answer: (_, { method }) => (method === 'OPTIONS' ? { status: 405 } : {}),
    }),
    fault('refuses HEAD', get, {
      answer: (_, { method }) => (method === 'HEAD' ? { status: 405 } : {}),
    }),
    fault('sends another ETag to HEAD', get, {
      answer: ({ headers }, { method }) =>
        method === 'HEAD' ? { headers: { ...headers, etag: '"another"' } } : {},
    }),
    fault('takes a broken percent-encoding', get, {
      request: ({ path }) => (path.includes('%E0%A4%A') ? { path: pathOf(path) } : {}),
    }),
    fault(
      'takes text/json',
      create,
      onRequest(create, ({ headers }) =>
        headers['content-type'] === 'text/json'
          ? { headers: { ...headers, 'content-type': 'application/json' } }
          : {},
      ),
    ),
    fault(
      'takes another charset',
      create,
      onRequest(create, ({ headers }) =>
        /charset/.test(headers['content-type'] ?? '')
          ? { headers: { ...headers, 'content-type': 'application/json' } }
          : {},
      ),
    ),
    fault('answers 400 to an oversized body', create, {
      answer: ({ status }) => (status === 413 ? { status: 400 } : {}),
    }),
    fault(
      'sends no body',
      create,
      onSuccess(create, () => ({ body: '' })),
    ),
    fault(
      'sends the Location of another record',
      create,
      onSuccess(create, ({ headers, status }) =>
        status === success
          ? { headers: { ...headers, location: `${headers.location?.slice(0, -4)}0000` } }
          : {},
      ),
    ),
  ]
}

/** An optional field that is never sent. */
export function optionalFieldFaults(contract: Contract): SeededFault[] {
  return contract.operations
    .flatMap((operation) =>
      listOptionalFields(contract, operation)
        .filter((field) => !field.includes('.'))
        .map(
          (field): SeededFault => ({
            category: 'protocol',
            what: `never sends the optional field ${field}`,
            operation,
            by: onBody(operation, ({ [field]: _, ...others }) => others),
          }),
        ),
    )
    .slice(0, 1)
}

/** Faults of headers whose values the contract describes in words. */
export function headerFaults(contract: Contract): SeededFault[] {
  const { get } = firstResource(contract)
  const fault = (what: string, by: SeededFault['by']): SeededFault => ({
    category: 'headers',
    what,
    operation: get,
    by,
  })
  const changed = (name: string, change: (value: string) => string): SeededFault['by'] =>
    onHeaders((headers) => {
      const value = headers[name]
      return value === undefined ? {} : { [name]: change(value) }
    })
  return [
    fault('omits X-Request-Id', {
      answer: ({ headers }) => ({ headers: withoutHeader(headers, 'x-request-id') }),
    }),
    fault(
      'sends the same X-Request-Id always',
      changed('x-request-id', () => 'constant'),
    ),
    fault('ignores X-Request-Id of the client', {
      request: ({ headers }) => ({ headers: withoutHeader(headers, 'x-request-id') }),
    }),
    fault(
      'sends X-RateLimit-Reset in milliseconds',
      changed('x-ratelimit-reset', (value) => String(Number(value) * 1000)),
    ),
    fault(
      'sends X-RateLimit-Reset of the past',
      changed('x-ratelimit-reset', (value) => String(Number(value) - HOUR_SECONDS)),
    ),
    fault(
      'sends X-RateLimit-Reset as seconds left',
      changed('x-ratelimit-reset', () => '30'),
    ),
    fault(
      'does not count down X-RateLimit-Remaining',
      changed('x-ratelimit-remaining', () => '59'),
    ),
    fault(
      'sends the seconds of RateLimit always as 60',
      changed('ratelimit', (value) => value.replace(/t=\d+/, 't=3600')),
    ),
    fault(
      'sends another remainder in RateLimit',
      changed('ratelimit', (value) => value.replace(/r=\d+/, 'r=1')),
    ),
    fault(
      'sends another window in RateLimit-Policy',
      changed('ratelimit-policy', (value) => value.replace(/w=\d+/, 'w=1')),
    ),
    fault(
      'sends another limit in RateLimit-Policy',
      changed('ratelimit-policy', (value) => value.replace(/q=\d+/, 'q=1')),
    ),
    fault(
      'omits X-Content-Type-Options',
      changed('x-content-type-options', () => 'none'),
    ),
    fault(
      'omits Vary',
      onHeaders(() => ({ vary: undefined })),
    ),
    fault(
      'lets shared caches store responses',
      changed('cache-control', () => 'public, max-age=60'),
    ),
    fault(
      'omits Cache-Control',
      onHeaders(() => ({ 'cache-control': undefined })),
    ),
  ]
}
