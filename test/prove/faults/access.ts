/** Seeded faults of API keys and permissions. */
import type { Contract } from '../../../scripts/model/contract.ts'
import { asJson, onRequest } from '../hooks.ts'
import { faultFactory, firstResource, type Keys, type SeededFault } from '../seeded-fault.ts'

const fault = faultFactory('access')

export function accessFaults(contract: Contract, { key, restrictedKey }: Keys): SeededFault[] {
  const { get, create, remove } = firstResource(contract)
  const guarded = contract.operations.find(
    ({ method, permission }) => method === 'get' && permission !== null,
  )
  const authorization = `Bearer ${key}`
  const isRestricted = (headers: Record<string, string>) =>
    headers.authorization === `Bearer ${restrictedKey}`
  const withKey = (headers: Record<string, string>) => ({ headers: { ...headers, authorization } })
  return [
    fault('needs no key', get, {
      changeRequest: ({ headers }) => (headers.authorization ? {} : withKey(headers)),
    }),
    fault('takes any key', get, { changeRequest: ({ headers }) => withKey(headers) }),
    fault('takes Basic authentication', get, {
      changeRequest: ({ headers }) =>
        /^Basic/.test(headers.authorization ?? '') ? withKey(headers) : {},
    }),
    fault(
      'lets a Read Only key create',
      create,
      onRequest(create, ({ headers }) => (isRestricted(headers) ? withKey(headers) : {})),
    ),
    fault('lets a Read Only key delete', remove, {
      changeRequest: ({ headers, method }) =>
        method === 'DELETE' && isRestricted(headers) ? withKey(headers) : {},
    }),
    fault('refuses a Read Only key for reading', get, {
      changeResponse: (response, { headers }) =>
        response.status === 200 && isRestricted(headers)
          ? asJson(403, response, { message: 'Forbidden.' })
          : {},
    }),
    fault('refuses a key, but does what it asked for', create, {
      async respond(request, forward) {
        const response = await forward(request)
        if (response.status !== 403) return response
        await forward({ ...request, ...withKey(request.headers) })
        return response
      },
    }),
    fault('returns 404 instead of 403', create, {
      changeResponse: ({ status }) => (status === 403 ? { status: 404 } : {}),
    }),
    ...(guarded === undefined
      ? []
      : [
          fault('ignores a missing permission', guarded, {
            changeRequest: ({ headers }) => (isRestricted(headers) ? withKey(headers) : {}),
          }),
        ]),
  ]
}
