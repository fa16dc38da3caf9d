/** The results of `muster contract` as text and as JSON. */
import { describeMissing, isExcused, isMissing } from '../scripts/contract/coverage.ts'
import { describeRefusal } from '../scripts/contract/refusals.ts'
import { describeUnused, listStatuses, type Report } from '../scripts/contract/report/report.ts'
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

export function formatReport(report: Report): string {
  const { url, seed, dredd, cases, untested, unused, refusals } = report
  const failures = formatFailures(report)
  const count = failures.length === 1 ? '1 failure' : `${failures.length} failures`
  const verdict = failures.length > 0 ? `${count}.` : 'the contract holds.'
  const requestCount = cases.reduce((sum, { requests }) => sum + requests, 0)
  const hasResults = dredd !== null || cases.length > 0
  return [
    ...(hasResults ? [formatMatrix(report), '', ...formatExcuses(report)] : []),
    ...failures,
    ...untested.map(({ operation, reason }) => `SKIP  ${operation}: ${reason}`),
    ...unused.map((oracle) => `SKIP  ${oracle.name}: ${describeUnused(oracle)}`),
    ...refusals.map((refusal) => `Note  ${refusal.operation}: ${describeRefusal(refusal)}`),
    ...(dredd ? [`Dredd: ${dredd.passed.length} documented responses verified.`] : []),
    `${requestCount} requests to ${url} with --seed ${seed}: ${verdict}`,
  ].join('\n')
}

function formatFailures({ error, dredd, cases, cells }: Report): string[] {
  return [
    ...(dredd?.failures ?? []).map((failure) => `FAIL  ${failure}\n`),
    ...cases.flatMap(({ operation, name, failures }) =>
      failures.map(
        ({ check, what, message, curl }) =>
          `FAIL  ${operation} ${name} (${check})\n      ${what}: ${message}\n${indent(curl)}\n`,
      ),
    ),
    ...cells.filter(isMissing).map((cell) => `FAIL  ${cell.operation}: ${describeMissing(cell)}`),
    ...(error === null ? [] : [`FAIL  the run ended early: ${error}`]),
  ]
}

const indent = (text: string): string => text.replace(/^/gm, '      ')

/** Explains the "-" in each column of the matrix. A column is a status, and the reason depends on
 *  the status alone. */
function formatExcuses({ cells }: Report): string[] {
  const reasons = new Map(cells.filter(isExcused).map(({ name, reason }) => [name, reason]))
  const lines = [...reasons].map(
    ([name, reason]) => `"-" under ${name}: not required, because this status ${reason}.`,
  )
  return lines.length === 0 ? [] : [...lines, '']
}

/** A row for each operation: how often each documented status and event occurred. */
function formatMatrix({ cells }: Report): string {
  const columns = listStatuses(cells)
  const ids = [...new Set(cells.map(({ operation }) => operation))]
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
  return formatTable(['OPERATION', ...columns, 'EVENTS'], rows)
}
