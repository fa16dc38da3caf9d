/** Seeded faults of statuses, media types, methods and the form of responses. */

import { listPromises } from '../../../scripts/contract/coverage/promises.ts'
import type { Contract } from '../../../scripts/model/contract.ts'
import { type ProxyResponse, parseObject } from '../faulty-proxy.ts'
import { isFor, onBody, onHeaders, onRequest, onSuccess, pathOf, withOtherId } from '../hooks.ts'
import { faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

const faults = faultFactory('protocol')

export function protocolFaults(contract: Contract): SeededFault[] {
  const { create, get, remove, list } = firstResource(contract)
  return [
    ...faults(create, {
      'returns 200 for a create': onSuccess(create, () => ({ status: 200 })),
      'returns 400 instead of 422': {
        changeResponse: ({ status }) => (status === 422 ? { status: 400 } : {}),
      },
      'returns 500 for the longest text': {
        respond: ({ body }) =>
          Object.values(parseObject(body)).some((value) => String(value).length >= 200)
            ? {
                status: 500,
                headers: { 'content-type': 'application/json' },
                body: '{"message":""}',
              }
            : undefined,
      },
      'shows the stack of an error': {
        changeResponse: ({ status, body }) =>
          status >= 400
            ? { body: JSON.stringify({ ...parseObject(body), stack: 'Error: at x.js:1' }) }
            : {},
      },
      'takes text/json': onRequest(create, ({ headers }) =>
        headers['content-type'] === 'text/json'
          ? { headers: { ...headers, 'content-type': 'application/json' } }
          : {},
      ),
      'takes another charset': onRequest(create, ({ headers }) =>
        /charset/.test(headers['content-type'] ?? '')
          ? { headers: { ...headers, 'content-type': 'application/json' } }
          : {},
      ),
      'returns 400 for an oversized body': {
        changeResponse: ({ status }) => (status === 413 ? { status: 400 } : {}),
      },
      'sends no body': onSuccess(create, () => ({ body: '' })),
      'sends the Location of another record': onSuccess(create, ({ headers }) => ({
        headers: { ...headers, location: withOtherId(headers.location) },
      })),
    }),
    ...faults(remove, {
      'returns 200 for a delete': onSuccess(remove, () => ({ status: 200 })),
    }),
    ...faults(get, {
      'returns 418 instead of 404': {
        changeResponse: ({ status }) => (status === 404 ? { status: 418 } : {}),
      },
      'sends text/html': onSuccess(get, ({ headers }) => ({
        headers: { ...headers, 'content-type': 'text/html' },
      })),
      'adds a charset to the media type': onSuccess(get, ({ headers }) => ({
        headers: { ...headers, 'content-type': 'application/json; charset=utf-8' },
      })),
      'omits a required field': onBody(get, (record) => {
        const { [Object.keys(record).at(-1) ?? '']: _, ...others } = record
        return others
      }),
      'omits the message of an error': {
        changeResponse: ({ status, body }) =>
          status === 404
            ? { body: JSON.stringify({ ...parseObject(body), message: undefined }) }
            : {},
      },
      'supports an undocumented method': {
        respond: ({ method, path }) =>
          method === 'PUT' && isFor(get, { method: 'GET', path }) ? noContent : undefined,
      },
      'omits the message of 405': {
        changeResponse: ({ status }) => (status === 405 ? { body: '{}' } : {}),
      },
      'omits Allow': onHeaders(() => ({ allow: undefined })),
      'refuses OPTIONS': {
        changeResponse: (_, { method }) => (method === 'OPTIONS' ? { status: 405 } : {}),
      },
      'refuses HEAD': {
        changeResponse: (_, { method }) => (method === 'HEAD' ? { status: 405 } : {}),
      },
      'sends another ETag to HEAD': {
        changeResponse: ({ headers }, { method }) =>
          method === 'HEAD' ? { headers: { ...headers, etag: '"another"' } } : {},
      },
      'takes a broken percent-encoding': {
        changeRequest: ({ path }) => (path.includes('%E0%A4%A') ? { path: pathOf(path) } : {}),
      },
    }),
    ...faults(list, {
      'sends a number as text': onBody(list, (page) => ({
        ...page,
        meta: { ...page.meta, total: String(page.meta?.total) },
      })),
    }),
  ]
}

/** A fault for the first optional field at the top level of a response. Empty without one. */
export function optionalFieldFaults(contract: Contract): SeededFault[] {
  return contract.operations
    .flatMap((operation) =>
      listPromises(contract)
        .filter(({ subject, claim }) => subject === operation.id && claim === 'response optional')
        .map(({ name }) => name)
        .filter((field) => !field.includes('.'))
        .flatMap((field) =>
          faults(operation, {
            [`never sends the optional field ${field}`]: onBody(
              operation,
              ({ [field]: _, ...others }) => others,
            ),
          }),
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
