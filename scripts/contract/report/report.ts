/** The results of a run. The other files of this folder and cli/contract-output.ts write them in
 *  several formats: HTML, JUnit, HAR and text. */
import { type Cell, isMissing, type Untested } from '../coverage.ts'
import type { DreddResult } from '../dredd/dredd-suite.ts'
import type { UnusedOracle } from '../oracles.ts'
import type { Refusal } from '../refusals.ts'
import type { Case } from '../suite.ts'

export interface Report {
  /** URL of the tested service. */
  url: string
  seed: number
  /** Why the run ended early. Null if it did not end early. */
  error: string | null
  /** Null if Dredd did not run, for example because the service is a deployed one. */
  dredd: DreddResult | null
  cases: Case[]
  /** The matrix of operations with their statuses, events and optional fields. */
  cells: Cell[]
  untested: Untested[]
  unused: UnusedOracle[]
  /** Reasons for which data that is valid by the schema was refused. */
  refusals: Refusal[]
}

export function isFailed({ error, dredd, cases, cells }: Report): boolean {
  return (
    error !== null ||
    (dredd?.failures ?? []).length > 0 ||
    cases.some(({ failures }) => failures.length > 0) ||
    cells.some(isMissing)
  )
}

/** The end of a sentence that begins with the name of the oracle. */
export function describeUnused({ needs }: UnusedOracle): string {
  return `had nothing to check; it needs ${needs}`
}

/** The rows of the matrix. */
export function listOperations(cells: Cell[]): string[] {
  const statuses = cells.filter(({ kind }) => kind === 'status')
  return [...new Set(statuses.map(({ operation }) => operation))]
}

/** The statuses in the matrix, sorted. */
export function listStatuses(cells: Cell[]): string[] {
  return [...new Set(cells.filter(({ kind }) => kind === 'status').map(({ name }) => name))].sort()
}
