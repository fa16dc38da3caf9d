/** The results of `muster contract` as text and as JSON. */
import { describeMissing, isMissing } from '../scripts/contract/coverage.ts'
import { describeRefusal } from '../scripts/contract/refusals.ts'
import { describeUnused, isFailed, listStatuses, type Report } from '../scripts/contract/report.ts'
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
  const { url, seed, error, dredd, cases, cells, untested, unused } = report
  const dreddFailures = (dredd?.failures ?? []).map((failure) => `FAIL  ${failure}\n`)
  const failures = cases.flatMap(({ operation, name, failures }) =>
    failures.map(
      ({ check, what, message, curl }) =>
        `FAIL  ${operation} ${name} (${check})\n      ${what}: ${message}\n${indent(curl)}\n`,
    ),
  )
  const missing = cells
    .filter(isMissing)
    .map((cell) => `FAIL  ${cell.operation}: ${describeMissing(cell)}`)
  const waivedReasons = new Map(
    cells
      .filter(({ seen, reason }) => seen === 0 && reason !== null)
      .map(({ name, reason }) => [name, reason]),
  )
  const requests = cases.reduce((sum, { requests }) => sum + requests, 0)
  const failureCount =
    dreddFailures.length + failures.length + missing.length + (error === null ? 0 : 1)
  const verdict = isFailed(report) ? `${failureCount} failures.` : 'the contract holds.'
  return [
    formatMatrix(report),
    '',
    ...[...waivedReasons].map(
      ([name, reason]) => `"-" under ${name}: not required, because it ${reason}.`,
    ),
    '',
    ...dreddFailures,
    ...failures,
    ...missing,
    ...untested.map(({ operation, reason }) => `SKIP  ${operation}: ${reason}`),
    ...unused.map((oracle) => `SKIP  ${oracle.name}: ${describeUnused(oracle)}`),
    ...(error === null ? [] : [`FAIL  the run ended early: ${error}`]),
    ...report.refusals.map((refusal) => `Note  ${refusal.operation}: ${describeRefusal(refusal)}`),
    ...(dredd ? [`Dredd: ${dredd.passed.length} documented responses verified.`] : []),
    `${requests} requests to ${url} with --seed ${seed}: ${verdict}`,
  ].join('\n')
}

const indent = (text: string): string => text.replace(/^/gm, '      ')

/** A row for each operation: how often each documented status and event occurred. */
function formatMatrix({ cells }: Report): string {
  const columns = listStatuses(cells)
  const ids = [...new Set(cells.map(({ operation }) => operation))]
  const rows = ids.map((id) => {
    const own = cells.filter(({ operation }) => operation === id)
    const statuses = columns.map((name) => {
      const cell = own.find((candidate) => candidate.kind === 'status' && candidate.name === name)
      if (cell === undefined) return ''
      return cell.seen === 0 && cell.reason !== null ? '-' : String(cell.seen)
    })
    const events = own
      .filter(({ kind }) => kind === 'event')
      .map(({ name, seen }) => `${name} ${seen}`)
    return [id, ...statuses, events.join(', ')]
  })
  return formatTable(['OPERATION', ...columns, 'EVENTS'], rows)
}
