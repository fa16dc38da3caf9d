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

export function accessFaults(contract: Contract, keys: Keys): SeededFault[] {
  const { key, restrictedKey, noPermissionKey, readPermissionKey } = keys
  const { list, get, create, remove } = firstResource(contract)
  const guardedCreate = assertFound(
    contract.operations.find(({ method, permission }) => method === 'post' && permission !== null),
  )
  const guarded = assertFound(
    contract.operations.find(({ method, permission }) => method === 'get' && permission !== null),
  )
  const authorization = `Bearer ${key}`
  const hasKey = (headers: Record<string, string>, apiKey: string) =>
    headers.authorization === `Bearer ${apiKey}`
  const isRestricted = (headers: Record<string, string>) => hasKey(headers, restrictedKey)
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
      'names another authentication scheme': {
        changeResponse: ({ status, headers }) =>
          status === 401 ? { headers: { ...headers, 'www-authenticate': 'Basic' } } : {},
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
      'ignores a missing permission of a Full Access key': {
        changeRequest: ({ headers }) => (hasKey(headers, noPermissionKey) ? withKey(headers) : {}),
      },
    }),
    ...faults(guardedCreate, {
      'takes the permission to read for one to write': onRequest(guardedCreate, ({ headers }) =>
        hasKey(headers, readPermissionKey) ? withKey(headers) : {},
      ),
    }),
    ...faults(list, {
      'shows a user only the records of the user': {
        changeResponse: (response, { headers }) =>
          response.status === 200 && hasKey(headers, readPermissionKey)
            ? { body: response.body.replace(/"data":\[.+\]/s, '"data":[]') }
            : {},
      },
    }),
  ]
}
