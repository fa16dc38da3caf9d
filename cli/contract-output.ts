/** The results of `muster contract` as text and as JSON. */
import { type Cell, isExcused } from '../scripts/contract/coverage/coverage.ts'
import { describeRefusal } from '../scripts/contract/coverage/refusals.ts'
import { type Cause, listCauses } from '../scripts/contract/report/causes.ts'
import { formatPromises } from '../scripts/contract/report/promises.ts'
import { describeUnused, type Report, toMatrix } from '../scripts/contract/report/report.ts'
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

/** A row for each operation, and the reasons for each "-": how often each documented status and event
 *  occurred. */
function formatMatrix({ cells }: Report): string[] {
  const { statuses, rows, excuses } = toMatrix(cells)
  const countOf = (cell: Cell): string => (isExcused(cell) ? '-' : String(cell.seen))
  const table = formatTable(
    ['OPERATION', ...statuses, 'EVENTS'],
    rows.map(({ operation, cells: own, events }) => [
      operation,
      ...own.map((cell) => (cell === undefined ? '' : countOf(cell))),
      events.map(({ name, seen }) => `${name} ${seen}`).join(', '),
    ]),
  )
  const lines = [...excuses].map(
    ([status, reason]) => `"-" under ${status}: not required, because this status ${reason}.`,
  )
  return [table, '', ...lines, ...(lines.length > 0 ? [''] : [])]
}
