/** Seeded faults of idempotency keys. */
import type { Contract } from '../../../scripts/model/contract.ts'
import type { ProxyResponse } from '../faulty-proxy.ts'
import { onSuccess, withoutHeaders } from '../hooks.ts'
import { faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

const fault = faultFactory('idempotency')

/** The contract tests also send invalid keys, which the service must still refuse. */
const isValidKey = (value: string | undefined): boolean => /^[!-~]{1,255}$/.test(value ?? '')

export function idempotencyFaults(contract: Contract): SeededFault[] {
  const { create } = firstResource(contract)
  const failed = new Map<string, ProxyResponse>()
  const inFlight = new Set<string>()
  return [
    fault('ignores Idempotency-Key', create, {
      changeRequest: ({ headers }) =>
        isValidKey(headers['idempotency-key'])
          ? { headers: withoutHeaders(headers, 'idempotency-key') }
          : {},
    }),
    fault('omits Idempotent-Replayed', create, {
      changeResponse: ({ headers }) => ({
        headers: withoutHeaders(headers, 'idempotent-replayed'),
      }),
    }),
    fault('repeats another body', create, {
      changeResponse: ({ headers, body }) =>
        headers['idempotent-replayed']
          ? { body: body.replace(/"updated_at":"..../, '"updated_at":"1999') }
          : {},
    }),
    fault('takes another request with a used key', create, {
      // To send another request with a used key, the tests add a space to the body.
      changeRequest: ({ body, headers }) =>
        body.endsWith(' ') ? { headers: withoutHeaders(headers, 'idempotency-key') } : {},
    }),
    fault('stores the response of an error', create, {
      async respond(request, forward) {
        const key = request.headers['idempotency-key']
        if (key === undefined) return undefined
        const stored = failed.get(key)
        if (stored) return stored
        const response = await forward(request)
        if (response.status === 422) failed.set(key, response)
        return response
      },
    }),
    fault('creates twice when two requests come at once', create, {
      async respond(request, forward) {
        const key = request.headers['idempotency-key']
        if (key === undefined) return undefined
        const headers = inFlight.has(key)
          ? withoutHeaders(request.headers, 'idempotency-key')
          : request.headers
        inFlight.add(key)
        return await forward({ ...request, headers }).finally(() => inFlight.delete(key))
      },
    }),
    fault(
      'marks a first response as a repeat',
      create,
      onSuccess(create, ({ headers }) => ({
        headers: { ...headers, 'idempotent-replayed': 'true' },
      })),
    ),
  ]
}
