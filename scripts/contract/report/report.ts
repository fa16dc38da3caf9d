/** The results of a run. The other files of this folder and cli/contract-output.ts write them in
 *  several formats: HTML, JUnit, HAR and text. */
import { type Cell, isExcused, isMissing, type Untested } from '../coverage/coverage.ts'
import type { Refusal } from '../coverage/refusals.ts'
import type { DreddResult } from '../dredd/dredd-suite.ts'
import type { UnusedOracle } from '../oracles.ts'
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
  /** The promises of the contract, with the number of tests. */
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

/** How often each documented status and event occurred. */
interface Matrix {
  /** The columns, sorted. */
  statuses: string[]
  rows: MatrixRow[]
  /** Why statuses need not occur, by status. */
  excuses: Map<string, string>
}

export interface MatrixRow {
  operation: string
  /** In the order of the columns. Undefined: the operation does not document the status. */
  cells: (Cell | undefined)[]
  events: Cell[]
}

export function toMatrix(cells: Cell[]): Matrix {
  const ofStatus = cells.filter(({ kind }) => kind === 'status')
  const statuses = [...new Set(ofStatus.map(({ name }) => name))].sort()
  const rows = [...Map.groupBy(ofStatus, ({ operation }) => operation)].map(([operation, own]) => ({
    operation,
    cells: statuses.map((status) => own.find(({ name }) => name === status)),
    events: cells.filter((cell) => cell.kind === 'event' && cell.operation === operation),
  }))
  const excused = ofStatus.filter(isExcused)
  return {
    statuses,
    rows,
    excuses: new Map(excused.map(({ name, reason }) => [name, reason ?? ''])),
  }
}
