import { findStaleLists, listEventAlternatives } from '../generate/repeated-lists.ts'
import type { Contract } from '../model/contract.ts'
import type { Finding, Place } from '../model/source.ts'

/** Differences between the alternatives of the schema Event and the subscribable events of
 *  asyncapi.yaml, and lists that `generate` has not written yet. */
export function findEventTypeMismatches(contract: Contract): Finding[] {
  const alternatives = listEventAlternatives(contract)
  if (alternatives.length === 0) return []
  const listed = new Map<unknown, Place>(
    alternatives.flatMap(({ schema: { source, path, value } }) =>
      (value.enum ?? []).map((type) => [type, { source, path: [...path, 'enum'] }]),
    ),
  )
  const subscribable = contract.events.filter(({ isSubscribable }) => isSubscribable)
  const missing = subscribable.filter(({ type }) => !listed.has(type))
  const unknown = [...listed].filter(([type]) => !subscribable.some((event) => event.type === type))
  return [
    ...missing.map(({ type, place }) => ({
      ...place,
      problem: `no alternative of the schema Event lists ${type}: add it to the enumeration of one`,
    })),
    ...unknown.map(([type, place]) => ({
      ...place,
      problem: `lists ${type}, no subscribable event of asyncapi.yaml: remove it`,
    })),
    ...findStaleLists(contract).map(({ source, path }) => ({
      source,
      path,
      problem: `${path.slice(-2).join('.')} is stale: run "npx muster generate"`,
    })),
  ]
}
