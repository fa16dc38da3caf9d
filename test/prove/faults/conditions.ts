/** Seeded faults of conditional requests and of ETags. */
import type { Contract } from '../../../scripts/model/contract.ts'
import type { ProxyHooks } from '../faulty-proxy.ts'
import { onSuccess, withoutHeaders } from '../hooks.ts'
import { faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

/** Whether the value can be an ETag. The contract tests also send headers of the largest size,
 *  whose values are no ETags. */
const isTag = (value: string | undefined): boolean => (value ?? '').length < 1000

const fault = faultFactory('conditions')

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
    fault(
      'ignores If-Match',
      update,
      withoutHeader('if-match', () => true),
    ),
    fault(
      'ignores If-Match of a delete',
      remove,
      withoutHeader('if-match', () => true),
    ),
    fault(
      'ignores If-None-Match',
      get,
      withoutHeader('if-none-match', () => true),
    ),
    fault('refuses If-Match: *', update, {
      changeRequest: ({ headers }) =>
        headers['if-match'] === '*' ? { headers: { ...headers, 'if-match': '"none"' } } : {},
    }),
    fault('ignores a list in If-Match', update, {
      changeRequest: ({ headers }) =>
        headers['if-match']?.includes(',') ? { headers: { ...headers, 'if-match': '"none"' } } : {},
    }),
    fault('takes a weak tag in If-Match', update, {
      changeRequest: ({ headers }) => ({
        headers: headers['if-match']
          ? { ...headers, 'if-match': headers['if-match'].replaceAll('W/', '') }
          : headers,
      }),
    }),
    fault(
      'ignores a list in If-None-Match',
      get,
      withoutHeader('if-none-match', (value) => value.includes(',')),
    ),
    fault(
      'ignores a weak tag in If-None-Match',
      get,
      withoutHeader('if-none-match', (value) => value.startsWith('W/')),
    ),
    fault(
      'ignores If-None-Match: *',
      get,
      withoutHeader('if-none-match', (value) => value === '*'),
    ),
    fault(
      'keeps the ETag after an update',
      update,
      changeEtag(() => '"constant"'),
    ),
    fault(
      'changes the ETag with each request',
      get,
      changeEtag((tag) => tag.replace(/"$/, `${Math.random().toString(36).slice(2)}"`)),
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
