/** Puts one fault at a time between the contract tests and the service, and counts the faults that
 *  the tests find. */
import { Coverage, isMissing } from '../../scripts/contract/coverage/coverage.ts'
import type { Run, Target } from '../../scripts/contract/run.ts'
import { runSuite } from '../../scripts/contract/suite.ts'
import { type DeliveryHook, startDeliveryProxy } from './delivery-proxy.ts'
import { startFaultyProxy } from './faulty-proxy.ts'
import type { Category, SeededFault } from './seeded-fault.ts'

export interface Proof {
  category: Category
  what: string
  operation: string
  /** The first failure, or else a status, event or field that never occurred. Null: the tests did
   *  not find the fault. */
  foundBy: string | null
}

interface CategoryCount {
  category: Category
  found: number
  faults: number
}

type TestedService = Pick<Run, 'contract' | 'validators' | 'target'>

export async function prove(
  service: TestedService,
  faults: SeededFault[],
  seed: number,
): Promise<Proof[]> {
  const proofs: Proof[] = []
  for (const fault of faults) {
    const { category, what, operation } = fault
    const foundBy = await testFault(service, fault, seed)
    proofs.push({ category, what, operation: operation.id, foundBy })
  }
  return proofs
}

/** Enough random requests to find a fault that needs several requests in a row. */
const RANDOM_REQUESTS: Partial<Record<Category, number>> = { sequences: 40 }

/** Tests the fault's operation. Returns the first failure, or else a status, event or field that
 *  never occurred. Null: the tests do not find the fault. */
async function testFault(
  { contract, validators, target }: TestedService,
  { category, operation, hooks, deliveryHook }: SeededFault,
  seed: number,
): Promise<string | null> {
  await using proxy = await startFaultyProxy(target.url, hooks)
  const ids = [operation.id]
  const coverage = new Coverage(contract, ids, {
    hasRestrictedKey: target.restrictedKey !== undefined,
  })
  const options = { ids, seed, randomRequests: RANDOM_REQUESTS[category] ?? 1 }
  const faulty = {
    ...target,
    url: proxy.url,
    // The service limits the requests with invalid keys from one IP address.
    invalidKeys: undefined,
    // All deliveries must pass the proxy, and the run must end with the first failure.
    newAccount: undefined,
    ...(deliveryHook && changeDeliveries(target, deliveryHook)),
  }
  const foundBy = await runSuite({
    contract,
    validators,
    target: faulty,
    options,
    coverage,
    onCase: ({ name, failures: [failure] }) => {
      // Ends the run.
      if (failure) throw new Error(`${name}: ${failure.what}: ${failure.message}`)
    },
    toCurl: ({ method, path }) => `${method} ${path}`,
  }).then(
    () => null,
    ({ message }: Error) => message,
  )
  const missing = coverage.listCells().find(isMissing)
  return foundBy ?? (missing ? `the ${missing.kind} ${missing.name} never occurred` : null)
}

/** Sends the deliveries of the target's webhooks through a proxy, which changes them. */
function changeDeliveries({ connect }: Target, hook: DeliveryHook): Pick<Target, 'connect'> {
  return {
    connect:
      connect &&
      (async (receiver, create) => {
        const proxy = await startDeliveryProxy(receiver.url, hook)
        const webhook = await connect({ ...receiver, url: proxy.url }, create)
        proxy.setSecret(webhook.secret)
        return {
          secret: webhook.secret,
          async [Symbol.asyncDispose]() {
            await webhook[Symbol.asyncDispose]()
            await proxy[Symbol.asyncDispose]()
          },
        }
      }),
  }
}

/** The counts of each category, in the order of the faults. */
export function countByCategory(proofs: Proof[]): CategoryCount[] {
  const categories = [...new Set(proofs.map(({ category }) => category))]
  return categories.map((category) => {
    const own = proofs.filter((proof) => proof.category === category)
    return {
      category,
      found: own.filter(({ foundBy }) => foundBy !== null).length,
      faults: own.length,
    }
  })
}
