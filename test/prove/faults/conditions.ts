/** Seeded faults of conditional requests and of ETags. */
import type { Contract } from '../../../scripts/model/contract.ts'
import type { ProxyHooks } from '../faulty-proxy.ts'
import { onSuccess, withoutHeaders } from '../hooks.ts'
import { faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

/** Whether the value can be an ETag. The contract tests also send headers of the largest size,
 *  whose values are no ETags. */
const isTag = (value: string | undefined): boolean => (value ?? '').length < 1000

const faults = faultFactory('conditions')

export function conditionFaults(contract: Contract): SeededFault[] {
  const { get, create, update, remove } = firstResource(contract)
  const withoutHeader = (name: string, when: (value: string) => boolean): ProxyHooks => ({
    changeRequest: ({ headers }) =>
      isTag(headers[name]) && when(headers[name] ?? '')
        ? { headers: withoutHeaders(headers, name) }
        : {},
  })
  const changeEtag = (change: (tag: string) => string): ProxyHooks => ({
    changeResponse: ({ headers }) =>
      headers.etag ? { headers: { ...headers, etag: change(headers.etag) } } : {},
  })
  return [
    ...faults(update, {
      'ignores If-Match': withoutHeader('if-match', () => true),
      'refuses If-Match: *': {
        changeRequest: ({ headers }) =>
          headers['if-match'] === '*' ? { headers: { ...headers, 'if-match': '"none"' } } : {},
      },
      'ignores a list in If-Match': {
        changeRequest: ({ headers }) =>
          headers['if-match']?.includes(',')
            ? { headers: { ...headers, 'if-match': '"none"' } }
            : {},
      },
      'takes a weak tag in If-Match': {
        changeRequest: ({ headers }) => ({
          headers: headers['if-match']
            ? { ...headers, 'if-match': headers['if-match'].replaceAll('W/', '') }
            : headers,
        }),
      },
      'keeps the ETag after an update': changeEtag(() => '"constant"'),
    }),
    ...faults(remove, {
      'ignores If-Match of a delete': withoutHeader('if-match', () => true),
    }),
    ...faults(get, {
      'ignores If-None-Match': withoutHeader('if-none-match', () => true),
      'ignores a list in If-None-Match': withoutHeader('if-none-match', (value) =>
        value.includes(','),
      ),
      'ignores a weak tag in If-None-Match': withoutHeader('if-none-match', (value) =>
        value.startsWith('W/'),
      ),
      'ignores If-None-Match: *': withoutHeader('if-none-match', (value) => value === '*'),
      'changes the ETag with each request': changeEtag((tag) =>
        tag.replace(/"$/, `${Math.random().toString(36).slice(2)}"`),
      ),
    }),
    ...faults(create, {
      'sends another ETag to a create than to a get': onSuccess(create, ({ headers }) => ({
        headers: { ...headers, etag: '"first"' },
      })),
    }),
  ]
}
