/** The results of `muster contract` as text and as JSON. */
import { isExcused } from '../scripts/contract/coverage.ts'
import { describeRefusal } from '../scripts/contract/refusals.ts'
import { type Cause, listCauses } from '../scripts/contract/report/causes.ts'
import { formatPromises } from '../scripts/contract/report/promises.ts'
import {
  describeUnused,
  listOperations,
  listStatuses,
  type Report,
} from '../scripts/contract/report/report.ts'
import { formatTable } from './shell.ts'

/** The document of `--json`. */
export function toDocument({ cases, ...report }: Report): object {
  return {
    ...report,
    cases: cases.map(({ durationMs, failures, ...rest }) => ({
      ...rest,
      duration_ms: durationMs,
      failures: failures.map(({ exchanges: _, ...failure }) => failure),
    })),
  }
}

interface Presentation {
  /** Whether to add the matrix, and the refusals that the schemas do not express. */
  matrix?: boolean
  /** The command that repeats the failed operations. */
  repeat?: string
  /** The files with the whole report. */
  files?: string[]
}

/** Failures first. The last lines say what to do next. */
export function formatReport(report: Report, presentation: Presentation = {}): string {
  const { untested, unused, refusals } = report
  const details = [
    ...formatMatrix(report),
    formatPromises(report.cells),
    ...refusals.map((refusal) => `Note  ${refusal.operation}: ${describeRefusal(refusal)}`),
  ]
  return [
    ...listCauses(report).map(formatCause),
    ...(report.error === null ? [] : [`FAIL  the run ended early: ${report.error}`]),
    ...(presentation.matrix ? details : []),
    ...untested.map(({ operation, reason }) => `SKIP  ${operation}: ${reason}`),
    ...unused.map((oracle) => `SKIP  ${oracle.name}: ${describeUnused(oracle)}`),
    ...formatVerdict(report, presentation),
  ].join('\n')
}

function formatCause({ first: [title, ...lines], operations }: Cause): string {
  const [, ...others] = operations
  const counts = Map.groupBy(others, (id) => id)
  const names = [...counts].map(([id, { length }]) => (length === 1 ? id : `${id} (${length})`))
  const more = names.length === 0 ? [] : [`Also ${others.length} more: ${names.join(', ')}`]
  const details = [...lines, ...more].map((line) => `\n${indent(line)}`).join('')
  return `FAIL  ${title}${details}${details && '\n'}`
}

function formatVerdict(report: Report, { repeat, files = [] }: Presentation): string[] {
  const { url, seed, error, dredd, cases } = report
  const causes = listCauses(report)
  const operations = causes.flatMap((cause) => cause.operations)
  const count = operations.length + (error === null ? 0 : 1)
  const failures = count === 1 ? '1 failure' : `${count} failures`
  const causeCount = causes.length === 1 ? '1 cause' : `${causes.length} causes`
  const grouped = causes.length < operations.length ? `, probably ${causeCount}` : ''
  const verdict = count > 0 ? `${failures}${grouped}.` : 'the contract holds.'
  const requestCount = cases.reduce((sum, { requests }) => sum + requests, 0)
  return [
    ...(dredd ? [`Dredd: ${dredd.passed.length} documented responses verified.`] : []),
    `${requestCount} requests to ${url} with --seed ${seed}: ${verdict}`,
    ...(repeat !== undefined && operations.length > 0 ? [`Repeat with: ${repeat}`] : []),
    ...(files.length > 0 ? [`Reports: ${files.join(', ')}`] : []),
  ]
}

const indent = (text: string): string => text.replace(/^/gm, '      ')

/** Explains the "-" in each column of the matrix. A column is a status, and the reason depends on
 *  the status alone. */
function formatExcuses({ cells }: Report): string[] {
  const reasons = new Map(
    cells
      .filter((cell) => isExcused(cell) && cell.kind === 'status')
      .map(({ name, reason }) => [name, reason]),
  )
  const lines = [...reasons].map(
    ([name, reason]) => `"-" under ${name}: not required, because this status ${reason}.`,
  )
  return lines.length === 0 ? [] : [...lines, '']
}

/** A row for each operation: how often each documented status and event occurred. */
function formatMatrix(report: Report): string[] {
  const { cells } = report
  const columns = listStatuses(cells)
  const ids = listOperations(cells)
  const rows = ids.map((id) => {
    const cellsOfRow = cells.filter(({ operation }) => operation === id)
    const statusCells = cellsOfRow.filter(({ kind }) => kind === 'status')
    const statuses = columns.map((column) => {
      const cell = statusCells.find(({ name }) => name === column)
      if (cell === undefined) return ''
      return isExcused(cell) ? '-' : String(cell.seen)
    })
    const events = cellsOfRow
      .filter(({ kind }) => kind === 'event')
      .map(({ name, seen }) => `${name} ${seen}`)
    return [id, ...statuses, events.join(', ')]
  })
  return [formatTable(['OPERATION', ...columns, 'EVENTS'], rows), '', ...formatExcuses(report)]
}
