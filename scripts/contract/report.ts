/** Writes the results of a run as JUnit XML and as one HTML file. */
import { escaped } from '../diff/junit.ts'
import { type Cell, isMissing } from './coverage.ts'
import type { DreddResult } from './dredd-suite.ts'
import type { Case, Failure } from './suite.ts'

export interface Report {
  /** URL of the tested service. */
  url: string
  seed: number
  /** Null for a deployed service. */
  dredd: DreddResult | null
  cases: Case[]
  cells: Cell[]
}

export function isFailed({ dredd, cases, cells }: Report): boolean {
  return (
    (dredd?.failures ?? []).length > 0 ||
    cases.some(({ failures }) => failures.length > 0) ||
    cells.some(isMissing)
  )
}

/** One test case for each check of each operation, and one for each cell of the matrix. */
export function junitOf({ url, seed, dredd, cases, cells }: Report): string {
  const asked = cases.map(({ operation, name, durationMs, failures }) => {
    const said = failures.map(
      (failure) =>
        `<failure type="${failure.check}" message="${escaped(sayFailure(failure))}">${escaped(failure.curl)}</failure>`,
    )
    return testcase(operation, name, said.join(''), durationMs)
  })
  const covered = cells.map((cell) => {
    const skipped =
      cell.seen === 0 && cell.reason !== null
        ? `<skipped message="${escaped(cell.reason)}"></skipped>`
        : ''
    const missing = isMissing(cell)
      ? '<failure type="coverage" message="was never seen"></failure>'
      : ''
    return testcase(cell.operation, `${cell.kind} ${cell.name} was seen`, skipped + missing)
  })
  const ofDredd = (dredd?.failures ?? []).map((failure) =>
    testcase('Dredd', failure, `<failure message="${escaped(failure)}"></failure>`),
  )
  const all = [...ofDredd, ...asked, ...covered]
  const failed = all.filter((line) => line.includes('<failure ')).length
  const skipped = all.filter((line) => line.includes('<skipped ')).length
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="muster contract ${escaped(url)} seed ${seed}" tests="${all.length}" failures="${failed}" skipped="${skipped}">
${all.join('')}  </testsuite>
</testsuites>
`
}

function testcase(operation: string, name: string, inside: string, durationMs = 0): string {
  return `    <testcase classname="${operation}" name="${escaped(name)}" time="${(durationMs / 1000).toFixed(3)}">${inside}</testcase>\n`
}

const sayFailure = ({ check, what, message }: Failure): string => `${check}: ${what}: ${message}`

/** All statuses: the columns of the matrix. */
export function columnsOf(cells: Cell[]): string[] {
  return [...new Set(cells.filter(({ kind }) => kind === 'status').map(({ name }) => name))].sort()
}

/** A page with the matrix, the events and the failures. */
export function htmlOf(report: Report): string {
  const { url, seed, dredd, cases, cells } = report
  const columns = columnsOf(cells)
  const ids = [...new Set(cells.map(({ operation }) => operation))]
  const failures = cases.flatMap((one) => one.failures.map((failure) => ({ ...one, failure })))
  const missing = cells.filter(isMissing).length
  const ofDredd = (dredd?.failures ?? []).map((failure) => `<pre>${escaped(failure)}</pre>`)
  const rows = ids.map((id) => {
    const own = cells.filter(({ operation }) => operation === id)
    const statuses = columns.map((name) =>
      cellOf(own.find((cell) => cell.kind === 'status' && cell.name === name)),
    )
    const events = own
      .filter(({ kind }) => kind === 'event')
      .map((cell) => `<span class="${classOf(cell)}">${escaped(cell.name)} ${cell.seen}</span>`)
    const failed = failures.filter(({ operation }) => operation === id).length
    return `<tr><th scope="row">${id}</th>${statuses.join('')}<td class="events">${events.join(' ')}</td><td class="${failed > 0 ? 'missing' : ''}">${failed || ''}</td></tr>`
  })
  const reasons = new Map(
    cells
      .filter(({ seen, reason }) => seen === 0 && reason !== null)
      .map(({ name, reason }) => [name, reason ?? '']),
  )
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Contract tests of ${escaped(url)}</title>
<style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem }
.wide { overflow-x: auto }
table { border-collapse: collapse }
th, td { border: 1px solid #8886; padding: .2rem .5rem; text-align: center; white-space: nowrap }
th[scope=row] { text-align: left }
td.events { text-align: left; white-space: normal }
.seen { background: #2a83; }
.excused { background: #8883; }
.missing { background: #d335; font-weight: bold }
.events span { border-radius: .3rem; padding: 0 .3rem; display: inline-block }
pre { overflow-x: auto; background: #8882; padding: .6rem }
</style>
<h1>Contract tests</h1>
<p>${escaped(url)}, seed ${seed}: ${cases.reduce((sum, { requests }) => sum + requests, 0)} requests, ${failures.length + ofDredd.length} failed, ${missing} documented but never occurred.</p>
<div class="wide"><table>
<tr><th>operation</th>${columns.map((name) => `<th>${name}</th>`).join('')}<th>events</th><th>failed</th></tr>
${rows.join('\n')}
</table></div>
<p>The number of occurrences of each documented status and event. <span class="missing">0</span> must occur; <span class="excused">–</span> is optional:</p>
<ul>${[...reasons].map(([name, reason]) => `<li>${escaped(name)} ${escaped(reason)}</li>`).join('')}</ul>
<h2>Failures</h2>
${[...ofDredd, ...failures.map(failureOf)].join('\n') || '<p>None.</p>'}
</html>
`
}

function failureOf({ operation, name, failure }: Case & { failure: Failure }): string {
  return `<h3>${operation} ${escaped(name)}</h3><p><b>${failure.check}</b> — ${escaped(`${failure.what}: ${failure.message}`)}</p><pre>${escaped(failure.curl)}</pre>`
}

function classOf(cell: Cell): string {
  if (cell.seen > 0) return 'seen'
  return isMissing(cell) ? 'missing' : 'excused'
}

function cellOf(cell: Cell | undefined): string {
  if (cell === undefined) return '<td></td>'
  const text =
    cell.seen === 0 && cell.reason !== null
      ? `<abbr title="${escaped(cell.reason)}">–</abbr>`
      : cell.seen
  return `<td class="${classOf(cell)}">${text}</td>`
}
