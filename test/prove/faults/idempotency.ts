/** Seeded faults of idempotency keys. */
import type { Contract } from '../../../scripts/model/contract.ts'
import type { ProxyResponse } from '../faulty-proxy.ts'
import { onSuccess, withoutHeaders } from '../hooks.ts'
import { faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

const faults = faultFactory('idempotency')

/** The contract tests also send invalid keys, which the service must still refuse. */
const isValidKey = (value: string | undefined): boolean => /^[!-~]{1,255}$/.test(value ?? '')

export function idempotencyFaults(contract: Contract): SeededFault[] {
  const { create } = firstResource(contract)
  const failed = new Map<string, ProxyResponse>()
  const inFlight = new Set<string>()
  return faults(create, {
    'ignores Idempotency-Key': {
      changeRequest: ({ headers }) =>
        isValidKey(headers['idempotency-key'])
          ? { headers: withoutHeaders(headers, 'idempotency-key') }
          : {},
    },
    'omits Idempotent-Replayed': {
      changeResponse: ({ headers }) => ({
        headers: withoutHeaders(headers, 'idempotent-replayed'),
      }),
    },
    'repeats another body': {
      changeResponse: ({ headers, body }) =>
        headers['idempotent-replayed']
          ? { body: body.replace(/"updated_at":"..../, '"updated_at":"1999') }
          : {},
    },
    'takes another request with a used key': {
      async respond(request, forward) {
        const response = await forward(request)
        const isRefused = response.status === 422 && response.body.includes('Idempotency-Key')
        if (!isRefused || !isValidKey(request.headers['idempotency-key'])) return response
        return await forward({
          ...request,
          headers: withoutHeaders(request.headers, 'idempotency-key'),
        })
      },
    },
    'stores the response of an error': {
      async respond(request, forward) {
        const key = request.headers['idempotency-key']
        if (key === undefined) return undefined
        const stored = failed.get(key)
        if (stored) return stored
        const response = await forward(request)
        if (response.status === 422) failed.set(key, response)
        return response
      },
    },
    'creates twice when two requests come at once': {
      async respond(request, forward) {
        const key = request.headers['idempotency-key']
        if (key === undefined) return undefined
        const headers = inFlight.has(key)
          ? withoutHeaders(request.headers, 'idempotency-key')
          : request.headers
        inFlight.add(key)
        return await forward({ ...request, headers }).finally(() => inFlight.delete(key))
      },
    },
    'marks a first response as a repeat': onSuccess(create, ({ headers }) => ({
      headers: { ...headers, 'idempotent-replayed': 'true' },
    })),
  })
}
