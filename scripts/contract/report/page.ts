/** The results of a run as one HTML file. */
import { escaped } from '../../report/junit.ts'
import { type Cell, describeMissing, isExcused, isMissing, type Untested } from '../coverage.ts'
import type { UnusedOracle } from '../oracles.ts'
import { formatTimes, type Refusal } from '../refusals.ts'
import type { Case, Failure } from '../suite.ts'
import { describeUnused, listStatuses, type Report } from './report.ts'

export function contractPage(report: Report): string {
  const { url, seed, error, dredd, cases, cells, untested, unused, refusals } = report
  const statuses = listStatuses(cells)
  const ids = [...new Set(cells.map(({ operation }) => operation))]
  const failures = cases.flatMap((one) => one.failures.map((failure) => ({ ...one, failure })))
  const failureBlocks = [
    ...(error === null ? [] : [`<pre>${escaped(`The run ended early: ${error}`)}</pre>`]),
    ...(dredd?.failures ?? []).map((failure) => `<pre>${escaped(failure)}</pre>`),
    ...failures.map(failureBlock),
  ]
  const requests = cases.reduce((sum, one) => sum + one.requests, 0)
  const missing = cells.filter(isMissing)
  const rows = ids.map((id) =>
    matrixRow(
      id,
      statuses,
      cells.filter(({ operation }) => operation === id),
      failures.filter(({ operation }) => operation === id).length,
    ),
  )
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Contract tests of ${escaped(url)}</title>
<style>${STYLE}</style>
<h1>Contract tests</h1>
<p>
  ${escaped(url)}, seed ${seed}: ${requests} requests, ${failureBlocks.length} failures,
  ${missing.length} documented statuses, events or fields that never occurred.
</p>
<div class="wide">
<table>
<tr>
  <th>operation</th>
  ${statuses.map((name) => `<th>${name}</th>`).join('')}
  <th>events</th>
  <th>failed</th>
</tr>
${rows.join('\n')}
</table>
</div>
<p>
  The number of occurrences of each documented status and event.
  <span class="missing">0</span>: must occur, but did not.
  <span class="excused">–</span>: need not occur, for one of these reasons:
</p>
${reasonList(cells)}
<h2>Never occurred</h2>
<ul>${missing.map(missingItem).join('') || '<li>None.</li>'}</ul>
<h2>Not tested</h2>
<ul>${[...untested.map(untestedItem), ...unused.map(unusedItem)].join('') || '<li>None.</li>'}</ul>
<h2>Rules that the schemas do not express</h2>
<ul>${refusals.map(refusalItem).join('') || '<li>None.</li>'}</ul>
<h2>Failures</h2>
${failureBlocks.join('\n') || '<p>None.</p>'}
</html>
`
}

const STYLE = `
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
`

function matrixRow(id: string, statuses: string[], cells: Cell[], failed: number): string {
  const counts = statuses.map((status) =>
    statusCell(cells.find(({ kind, name }) => kind === 'status' && name === status)),
  )
  const events = cells.filter(({ kind }) => kind === 'event').map(eventLabel)
  return `<tr>
  <th scope="row">${id}</th>
  ${counts.join('')}
  <td class="events">${events.join(' ')}</td>
  <td class="${failed > 0 ? 'missing' : ''}">${failed || ''}</td>
</tr>`
}

function statusCell(cell: Cell | undefined): string {
  if (cell === undefined) return '<td></td>'
  const text = isExcused(cell)
    ? `<abbr title="${escaped(cell.reason ?? '')}">–</abbr>`
    : String(cell.seen)
  return `<td class="${cellClass(cell)}">${text}</td>`
}

function eventLabel(cell: Cell): string {
  return `<span class="${cellClass(cell)}">${escaped(cell.name)} ${cell.seen}</span>`
}

function cellClass(cell: Cell): string {
  if (cell.seen > 0) return 'seen'
  return isMissing(cell) ? 'missing' : 'excused'
}

function reasonList(cells: Cell[]): string {
  const reasons = new Map(cells.filter(isExcused).map(({ name, reason }) => [name, reason ?? '']))
  const items = [...reasons].map(([name, reason]) => `<li>${escaped(`${name} ${reason}`)}</li>`)
  return `<ul>${items.join('')}</ul>`
}

function missingItem(cell: Cell): string {
  return `<li>${cell.operation}: ${escaped(describeMissing(cell))}</li>`
}

function untestedItem({ operation, reason }: Untested): string {
  return `<li>${operation}: ${escaped(reason)}</li>`
}

function unusedItem(oracle: UnusedOracle): string {
  return `<li>${escaped(`${oracle.name}: ${describeUnused(oracle)}`)}</li>`
}

function refusalItem({ operation, field, message, count }: Refusal): string {
  return `<li>${operation}: ${escaped(`${field} ${message}`)} (${formatTimes(count)})</li>`
}

function failureBlock({ operation, name, failure }: Case & { failure: Failure }): string {
  return `<h3>${operation} ${escaped(name)}</h3>
<p><b>${failure.check}</b> — ${escaped(`${failure.what}: ${failure.message}`)}</p>
<pre>${escaped(failure.curl)}</pre>`
}
