/** Seeded faults of API keys and permissions. */
import type { Contract } from '../../../scripts/model/contract.ts'
import { asJson, onRequest } from '../hooks.ts'
import {
  assertFound,
  faultFactory,
  firstResource,
  type Keys,
  type SeededFault,
} from '../seeded-fault.ts'

const faults = faultFactory('access')

export function accessFaults(contract: Contract, { key, restrictedKey }: Keys): SeededFault[] {
  const { get, create, remove } = firstResource(contract)
  const guarded = assertFound(
    contract.operations.find(({ method, permission }) => method === 'get' && permission !== null),
  )
  const authorization = `Bearer ${key}`
  const isRestricted = (headers: Record<string, string>) =>
    headers.authorization === `Bearer ${restrictedKey}`
  const withKey = (headers: Record<string, string>) => ({ headers: { ...headers, authorization } })
  return [
    ...faults(get, {
      'needs no key': {
        changeRequest: ({ headers }) => (headers.authorization ? {} : withKey(headers)),
      },
      'takes any key': { changeRequest: ({ headers }) => withKey(headers) },
      'takes Basic authentication': {
        changeRequest: ({ headers }) =>
          /^Basic/.test(headers.authorization ?? '') ? withKey(headers) : {},
      },
      'refuses a Read Only key for reading': {
        changeResponse: (response, { headers }) =>
          response.status === 200 && isRestricted(headers)
            ? asJson(403, response, { message: 'Forbidden.' })
            : {},
      },
    }),
    ...faults(create, {
      'lets a Read Only key create': onRequest(create, ({ headers }) =>
        isRestricted(headers) ? withKey(headers) : {},
      ),
      'refuses a key, but does what it asked for': {
        async respond(request, forward) {
          const response = await forward(request)
          if (response.status !== 403) return response
          await forward({ ...request, ...withKey(request.headers) })
          return response
        },
      },
      'returns 404 instead of 403': {
        changeResponse: ({ status }) => (status === 403 ? { status: 404 } : {}),
      },
    }),
    ...faults(remove, {
      'lets a Read Only key delete': {
        changeRequest: ({ headers, method }) =>
          method === 'DELETE' && isRestricted(headers) ? withKey(headers) : {},
      },
    }),
    ...faults(guarded, {
      'ignores a missing permission': {
        changeRequest: ({ headers }) => (isRestricted(headers) ? withKey(headers) : {}),
      },
    }),
  ]
}
