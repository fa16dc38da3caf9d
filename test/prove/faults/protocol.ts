/** Seeded faults of statuses, media types, methods and the form of responses. */

import { listOptionalFields } from '../../../scripts/contract/response-fields.ts'
import type { Contract } from '../../../scripts/model/contract.ts'
import { type ProxyResponse, parseObject } from '../faulty-proxy.ts'
import { isFor, onBody, onHeaders, onRequest, onSuccess, pathOf, withOtherId } from '../hooks.ts'
import { faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

const fault = faultFactory('protocol')

export function protocolFaults(contract: Contract): SeededFault[] {
  const { create, get, remove, list } = firstResource(contract)
  return [
    fault(
      'returns 200 for a create',
      create,
      onSuccess(create, () => ({ status: 200 })),
    ),
    fault(
      'returns 200 for a delete',
      remove,
      onSuccess(remove, () => ({ status: 200 })),
    ),
    fault('returns 418 instead of 404', get, {
      changeResponse: ({ status }) => (status === 404 ? { status: 418 } : {}),
    }),
    fault('returns 400 instead of 422', create, {
      changeResponse: ({ status }) => (status === 422 ? { status: 400 } : {}),
    }),
    fault('returns 500 for the longest text', create, {
      respond: ({ body }) =>
        Object.values(parseObject(body)).some((value) => String(value).length >= 200)
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
      changeResponse: ({ status, body }) =>
        status >= 400
          ? { body: JSON.stringify({ ...parseObject(body), stack: 'Error: at x.js:1' }) }
          : {},
    }),
    fault('omits the message of an error', get, {
      changeResponse: ({ status, body }) =>
        status === 404
          ? { body: JSON.stringify({ ...parseObject(body), message: undefined }) }
          : {},
    }),
    fault('supports an undocumented method', get, {
      respond: ({ method, path }) =>
        method === 'PUT' && isFor(get, { method: 'GET', path }) ? noContent : undefined,
    }),
    fault(
      'omits Allow',
      get,
      onHeaders(() => ({ allow: undefined })),
    ),
    fault('refuses OPTIONS', get, {
      changeResponse: (_, { method }) => (method === 'OPTIONS' ? { status: 405 } : {}),
    }),
    fault('refuses HEAD', get, {
      changeResponse: (_, { method }) => (method === 'HEAD' ? { status: 405 } : {}),
    }),
    fault('sends another ETag to HEAD', get, {
      changeResponse: ({ headers }, { method }) =>
        method === 'HEAD' ? { headers: { ...headers, etag: '"another"' } } : {},
    }),
    fault('takes a broken percent-encoding', get, {
      changeRequest: ({ path }) => (path.includes('%E0%A4%A') ? { path: pathOf(path) } : {}),
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
    fault('returns 400 for an oversized body', create, {
      changeResponse: ({ status }) => (status === 413 ? { status: 400 } : {}),
    }),
    fault(
      'sends no body',
      create,
      onSuccess(create, () => ({ body: '' })),
    ),
    fault(
      'sends the Location of another record',
      create,
      onSuccess(create, ({ headers }) => ({
        headers: { ...headers, location: withOtherId(headers.location) },
      })),
    ),
  ]
}

/** A fault for the first optional field at the top level of a response. Empty without one. */
export function optionalFieldFaults(contract: Contract): SeededFault[] {
  return contract.operations
    .flatMap((operation) =>
      listOptionalFields(contract, operation)
        .filter((field) => !field.includes('.'))
        .map((field) =>
          fault(
            `never sends the optional field ${field}`,
            operation,
            onBody(operation, ({ [field]: _, ...others }) => others),
          ),
        ),
    )
    .slice(0, 1)
}

const noContent: ProxyResponse = {
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
