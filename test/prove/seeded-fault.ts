/** The faults of `npm run test:faults`. Proxies put them into the requests, responses and
 *  deliveries of the service. */
import { Refused } from '../../errors.ts'
import { type CrudKind, listCrudKinds } from '../../scripts/contract/record-kinds.ts'
import type { Contract } from '../../scripts/model/contract.ts'
import type { Operation } from '../../scripts/model/operations.ts'
import type { DeliveryHook } from './delivery-proxy.ts'
import type { ProxyHooks } from './faulty-proxy.ts'

export type Category =
  | 'protocol'
  | 'headers'
  | 'validation'
  | 'access'
  | 'conditions'
  | 'idempotency'
  | 'lists'
  | 'stored values'
  | 'sequences'
  | 'isolation'
  | 'events'
  | 'deliveries'
  | 'signatures'

export interface SeededFault {
  category: Category
  /** What the service does wrong, for example `returns 200 for a create`. */
  what: string
  /** The operation whose tests must find the fault. */
  operation: Operation
  /** Hooks of the proxy between the tests and the service. The hooks, not `operation`, decide which
   *  requests and responses the proxy changes. */
  hooks: ProxyHooks
  /** Hook of the proxy between the service and the receiver of its webhooks. */
  deliveryHook?: DeliveryHook
}

export interface Keys {
  /** The Full Access key of the run. */
  key: string
  /** A Full Access key of another account. */
  otherKey: string
  /** A Read Only key of the account of the run. */
  restrictedKey: string
}

/** Returns a function that lists faults of one operation. `hooks` has the hooks by the names of the
 *  faults. */
export function faultFactory(category: Category) {
  return (operation: Operation, hooks: Record<string, ProxyHooks>): SeededFault[] =>
    Object.entries(hooks).map(([what, hooksOfFault]) => ({
      category,
      what,
      operation,
      hooks: hooksOfFault,
    }))
}

export type Resource = CrudKind & { list: Operation }

/** The kinds of records that can be listed, created, read, updated and deleted. */
export function listResources(contract: Contract): Resource[] {
  return listCrudKinds(contract).filter((kind): kind is Resource => kind.list !== undefined)
}

/** The first of `listResources`. Throws `Refused` if the contract has none. */
export function firstResource(contract: Contract): Resource {
  const [first] = listResources(contract)
  if (!first)
    throw new Refused(
      'Faults need records that can be listed, created, read, updated and deleted. The contract has none.',
    )
  return first
}
