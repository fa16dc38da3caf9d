/** `muster contract --prove`: gives this service faults, one at a time, and reports which of them
 *  the contract tests find. */
import { Refused } from '../errors.ts'
import * as validators from '../generated/validators.js'
import { listSeededFaults } from '../scripts/contract/prove/faults.ts'
import { isEnough, type Proof, prove, scoresOf } from '../scripts/contract/prove/prove.ts'
import type { Contract } from '../scripts/model/contract.ts'
import { startOwnService } from './contract-service.ts'
import type { CheckReport } from './reports.ts'
import { formatTable } from './shell.ts'

export interface ProveOptions {
  /** True: all faults. A text: only the faults that have it in their names. */
  prove: string | true
  seed?: number
}

/** Starts this service on temporary databases. For each fault, runs the contract tests of its
 *  operation through a proxy that has the fault. */
export async function proveContract(
  contract: Contract,
  { prove: part, seed = 1 }: ProveOptions,
): Promise<CheckReport> {
  await using service = await startOwnService()
  const faults = listSeededFaults(contract, service).filter(
    ({ category, what }) => part === true || `${category}: ${what}`.includes(part),
  )
  if (faults.length === 0) throw new Refused(`No fault has "${part}" in its name.`)
  const proofs = await prove({ contract, validators, target: service }, faults, seed)
  const failed = !isEnough(proofs)
  return {
    output: {
      document: { scores: scoresOf(proofs), faults: proofs },
      text: formatProofs(proofs),
      failed,
    },
    results: proofs
      .filter(({ foundBy }) => foundBy === null)
      .map(({ category, what, operation }) => ({
        level: failed ? 'error' : 'warning',
        rule: category,
        message: `${operation}: no check finds this fault: ${what}`,
        file: null,
        line: null,
      })),
  }
}

function formatProofs(proofs: Proof[]): string {
  const scores = scoresOf(proofs)
  const missed = proofs
    .filter(({ foundBy }) => foundBy === null)
    .map(({ category, what, operation }) => `NOT FOUND  ${category}: ${what} (${operation})`)
  const found = proofs.length - missed.length
  const rows = [...scores, { category: 'all', found, faults: proofs.length }]
  return [
    formatTable(
      ['CATEGORY', 'FOUND', 'FAULTS', 'SCORE'],
      rows.map(({ category, found: count, faults }) => [
        category,
        String(count),
        String(faults),
        `${Math.floor((100 * count) / faults)} %`,
      ]),
    ),
    ...missed,
  ].join('\n')
}
