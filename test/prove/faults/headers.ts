/** Seeded faults of response headers whose values the contract describes. */
import type { Contract } from '../../../scripts/model/contract.ts'
import type { ProxyHooks } from '../faulty-proxy.ts'
import { onHeaders, withoutHeaders } from '../hooks.ts'
import { faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

const HOUR_SECONDS = 3600

const fault = faultFactory('headers')

export function headerFaults(contract: Contract): SeededFault[] {
  const { get } = firstResource(contract)
  const changeHeader = (name: string, change: (value: string) => string): ProxyHooks =>
    onHeaders((headers) => {
      const value = headers[name]
      return value === undefined ? {} : { [name]: change(value) }
    })
  return [
    fault('omits X-Request-Id', get, {
      changeResponse: ({ headers }) => ({ headers: withoutHeaders(headers, 'x-request-id') }),
    }),
    fault(
      'sends the same X-Request-Id always',
      get,
      changeHeader('x-request-id', () => 'constant'),
    ),
    fault('ignores X-Request-Id of the client', get, {
      changeRequest: ({ headers }) => ({ headers: withoutHeaders(headers, 'x-request-id') }),
    }),
    fault(
      'sends X-RateLimit-Reset in milliseconds',
      get,
      changeHeader('x-ratelimit-reset', (value) => String(Number(value) * 1000)),
    ),
    fault(
      'sends X-RateLimit-Reset of the past',
      get,
      changeHeader('x-ratelimit-reset', (value) => String(Number(value) - HOUR_SECONDS)),
    ),
    fault(
      'sends X-RateLimit-Reset as seconds left',
      get,
      changeHeader('x-ratelimit-reset', () => '30'),
    ),
    fault(
      'does not count down X-RateLimit-Remaining',
      get,
      changeHeader('x-ratelimit-remaining', () => '59'),
    ),
    fault(
      'sends the seconds of RateLimit always as 3600',
      get,
      changeHeader('ratelimit', (value) => value.replace(/t=\d+/, 't=3600')),
    ),
    fault(
      'sends another remainder in RateLimit',
      get,
      changeHeader('ratelimit', (value) => value.replace(/r=\d+/, 'r=1')),
    ),
    fault(
      'sends another window in RateLimit-Policy',
      get,
      changeHeader('ratelimit-policy', (value) => value.replace(/w=\d+/, 'w=1')),
    ),
    fault(
      'sends another limit in RateLimit-Policy',
      get,
      changeHeader('ratelimit-policy', (value) => value.replace(/q=\d+/, 'q=1')),
    ),
    fault(
      'sends another X-Content-Type-Options',
      get,
      changeHeader('x-content-type-options', () => 'none'),
    ),
    fault(
      'omits Vary',
      get,
      onHeaders(() => ({ vary: undefined })),
    ),
    fault(
      'lets shared caches store responses',
      get,
      changeHeader('cache-control', () => 'public, max-age=60'),
    ),
    fault(
      'omits Cache-Control',
      get,
      onHeaders(() => ({ 'cache-control': undefined })),
    ),
  ]
}
