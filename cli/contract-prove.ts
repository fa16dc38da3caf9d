/** `muster contract --prove`: which of the seeded faults do the contract tests find? */
import { Refused } from '../errors.ts'
import { listSeededFaults } from '../scripts/contract/prove/faults.ts'
import { isEnough, type Proof, prove, scoresOf } from '../scripts/contract/prove/prove.ts'
import type { Contract } from '../scripts/model/contract.ts'
import { startOwnService } from './contract-service.ts'
import { formatTable, type Output } from './shell.ts'

export interface ProveOptions {
  /** True, or a part of the names of the faults. */
  prove: string | true
  seed?: number
}

/** Starts the service of this installation, and puts the faults between it and the contract tests. */
export async function proveContract(
  contract: Contract,
  { prove: part, seed = 1 }: ProveOptions,
): Promise<Output> {
  await using service = await startOwnService()
  const faults = listSeededFaults(contract, service).filter(
    ({ category, what }) => part === true || `${category}: ${what}`.includes(part),
  )
  if (faults.length === 0) throw new Refused(`No fault has "${part}" in its name.`)
  const proofs = await prove(contract, service, faults, seed)
  return {
    document: { scores: scoresOf(proofs), faults: proofs },
    text: formatProofs(proofs),
    failed: !isEnough(proofs),
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
      rows.map(({ category, found: own, faults }) => [
        category,
        String(own),
        String(faults),
        `${Math.floor((100 * own) / faults)} %`,
      ]),
    ),
    ...missed,
  ].join('\n')
}
