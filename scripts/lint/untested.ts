/** Promises of the contract that no oracle of `muster contract` tests. */

import { listPromises } from '../contract/coverage/promises.ts'
import { listTesters } from '../contract/coverage/testers.ts'
import { ORACLES } from '../contract/oracles.ts'
import type { Contract } from '../model/contract.ts'
import { type Finding, isObject } from '../model/source.ts'
import { findUnsupportedParts } from '../model/supported.ts'

/** Once for each claim, at the first promise. Also reasons in `x-untested` of the documents that no
 *  longer hold. */
export function findUntested(contract: Contract): Finding[] {
  // A schema that contains itself has promises without end.
  if (findUnsupportedParts(contract).length > 0) return []
  const untested = listPromises(contract).filter(
    ({ claim, reason }) => reason === null && listTesters(ORACLES, claim).length === 0,
  )
  const byClaim = new Map(untested.toReversed().map((promise) => [promise.claim, promise]))
  const findings = [...byClaim.values()].map(({ subject, name, claim, place }) => ({
    source: place.source,
    path: [...place.path, claim.split('.')[0] ?? ''],
    problem:
      `no oracle tests the promise "${claim}", for example of ${[subject, name].join(' ').trim()}: ` +
      'add it to `tests` of the oracle that does, or the reason to x-untested',
  }))
  return [...findings, ...findTested(contract)]
}

function findTested({ sources }: Contract): Finding[] {
  return Object.values(sources).flatMap((source) => {
    const reasons = isObject(source.root) ? source.root['x-untested'] : undefined
    return Object.keys(isObject(reasons) ? reasons : {}).flatMap((claim) =>
      listTesters(ORACLES, claim).map(({ name }) => ({
        source,
        path: ['x-untested', claim],
        problem: `the oracle "${name}" tests "${claim}": remove the reason`,
      })),
    )
  })
}
