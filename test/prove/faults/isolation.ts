/** Seeded faults: the service does not keep accounts apart. */
import type { Contract } from '../../../scripts/model/contract.ts'
import type { Operation } from '../../../scripts/model/operations.ts'
import { requestSchema } from '../../../scripts/words/records.ts'
import type { ProxyHooks, ProxyRequest } from '../faulty-proxy.ts'
import { isFor, onRequest, pathOf } from '../hooks.ts'
import { faultFactory, firstResource, type Keys, type SeededFault } from '../seeded-fault.ts'

const faults = faultFactory('isolation')

export function isolationFaults(contract: Contract, { key, otherKey }: Keys): SeededFault[] {
  const { list, create, get, update, remove } = firstResource(contract)
  const { create: referring } = firstResource(contract, (resource) => {
    const { properties = {} } = requestSchema(contract, resource.create)
    return Object.values(properties).some(({ format }) => format === 'uuid')
  })
  const isFromOther = ({ headers }: ProxyRequest) => headers.authorization === `Bearer ${otherKey}`
  const asRun = ({ headers }: ProxyRequest) => ({
    headers: { ...headers, authorization: `Bearer ${key}` },
  })
  /** Serves requests of the other account as if they had the key of the run. */
  const confuseAccounts = (
    operation: Operation,
    fits = (_: ProxyRequest): boolean => true,
  ): ProxyHooks =>
    onRequest(operation, (request) => (isFromOther(request) && fits(request) ? asRun(request) : {}))
  return [
    ...faults(get, {
      'returns the record of another account': confuseAccounts(get),
      'returns 403 for the record of another account': {
        changeResponse: ({ status }, request) =>
          isFromOther(request) && status === 404 ? { status: 403 } : {},
      },
      'returns 304 for the record of another account': confuseAccounts(
        get,
        ({ headers }) => 'if-none-match' in headers,
      ),
    }),
    ...faults(update, { 'updates the record of another account': confuseAccounts(update) }),
    ...faults(remove, { 'deletes the record of another account': confuseAccounts(remove) }),
    ...faults(list, {
      'lists the records of another account': confuseAccounts(list),
      'filters the records of another account': confuseAccounts(list, ({ path }) =>
        path.includes('filter'),
      ),
      'counts the records of another account': {
        async respond(request, forward) {
          if (!isFor(list, request) || !isFromOther(request)) return undefined
          const [ofOther, ofRun] = [
            await forward(request),
            await forward({ ...request, ...asRun(request) }),
          ]
          if (ofOther.status !== 200) return ofOther
          const page = JSON.parse(ofOther.body)
          page.meta = JSON.parse(ofRun.body).meta
          return { ...ofOther, body: JSON.stringify(page) }
        },
      },
    }),
    ...faults(create, { 'shares Idempotency-Keys between accounts': sharedKeys(create.path) }),
    ...faults(referring, {
      'lets a record refer to the record of another account': confuseAccounts(
        referring,
        ({ body }) => /_id"/.test(body),
      ),
    }),
  ]
}

/** Repeats the body of the first 201 for an idempotency key, also for another account. */
function sharedKeys(path: string): ProxyHooks {
  const stored = new Map<string, string>()
  return {
    async respond(request, forward) {
      const idempotencyKey = request.headers['idempotency-key']
      if (idempotencyKey === undefined || pathOf(request.path) !== path) return undefined
      const response = await forward(request)
      const first = stored.get(idempotencyKey)
      if (response.status !== 201) return response
      if (first === undefined) {
        stored.set(idempotencyKey, response.body)
        return response
      }
      return {
        ...response,
        body: first,
        headers: { ...response.headers, 'idempotent-replayed': 'true' },
      }
    },
  }
}
