/** The faults of `npm run test:faults`. Proxies put them into the requests, responses and
 *  deliveries of the service. */
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
  /** A Full Access key of the user of `restrictedKey`. */
  noPermissionKey: string
  /** A Full Access key of a user whose permission is to read only. */
  readPermissionKey: string
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

/** The first of `listResources` that fits. */
export function firstResource(
  contract: Contract,
  fits = (_resource: Resource): boolean => true,
): Resource {
  return assertFound(listResources(contract).find(fits))
}

/** Throws if the contract has no such part: otherwise its faults would be left out silently. */
export function assertFound<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('The contract lacks a part that the faults change.')
  return part
}
