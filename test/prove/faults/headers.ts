/** Seeded faults of response headers whose values the contract describes. */
import type { Contract } from '../../../scripts/model/contract.ts'
import type { ProxyHooks } from '../faulty-proxy.ts'
import { onHeaders, withoutHeaders } from '../hooks.ts'
import { faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

const HOUR_SECONDS = 3600

const faults = faultFactory('headers')

export function headerFaults(contract: Contract): SeededFault[] {
  const { get } = firstResource(contract)
  const changeHeader = (name: string, change: (value: string) => string): ProxyHooks =>
    onHeaders((headers) => {
      const value = headers[name]
      return value === undefined ? {} : { [name]: change(value) }
    })
  return faults(get, {
    'omits X-Request-Id': {
      changeResponse: ({ headers }) => ({ headers: withoutHeaders(headers, 'x-request-id') }),
    },
    'sends the same X-Request-Id always': changeHeader('x-request-id', () => 'constant'),
    'ignores X-Request-Id of the client': {
      changeRequest: ({ headers }) => ({ headers: withoutHeaders(headers, 'x-request-id') }),
    },
    'sends X-RateLimit-Reset in milliseconds': changeHeader('x-ratelimit-reset', (value) =>
      String(Number(value) * 1000),
    ),
    'sends X-RateLimit-Reset of the past': changeHeader('x-ratelimit-reset', (value) =>
      String(Number(value) - HOUR_SECONDS),
    ),
    'sends X-RateLimit-Reset as seconds left': changeHeader('x-ratelimit-reset', () => '30'),
    'does not count down X-RateLimit-Remaining': changeHeader('x-ratelimit-remaining', () => '59'),
    'sends the seconds of RateLimit always as 3600': changeHeader('ratelimit', (value) =>
      value.replace(/t=\d+/, 't=3600'),
    ),
    'sends another remainder in RateLimit': changeHeader('ratelimit', (value) =>
      value.replace(/r=\d+/, 'r=1'),
    ),
    'sends another window in RateLimit-Policy': changeHeader('ratelimit-policy', (value) =>
      value.replace(/w=\d+/, 'w=1'),
    ),
    'sends another limit in RateLimit-Policy': changeHeader('ratelimit-policy', (value) =>
      value.replace(/q=\d+/, 'q=1'),
    ),
    'sends another X-Content-Type-Options': changeHeader('x-content-type-options', () => 'none'),
    'omits Vary': onHeaders(() => ({ vary: undefined })),
    'lets shared caches store responses': changeHeader('cache-control', () => 'public, max-age=60'),
    'omits Cache-Control': onHeaders(() => ({ 'cache-control': undefined })),
  })
}
