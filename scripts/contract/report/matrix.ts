/** The matrix of a run as HTML, which stands above the results. */
import { escaped } from '../../report/junit.ts'
import { type Cell, isExcused, isMissing } from '../coverage/coverage.ts'
import { promisesSection } from './promises.ts'
import { type MatrixRow, type Report, toMatrix } from './report.ts'

/** How often each documented status and event of each operation occurred. */
export function matrixSection({ url, seed, cases, cells }: Report): string {
  const { statuses, rows, excuses } = toMatrix(cells)
  const failures = cases.flatMap((one) => one.failures.map(() => one.operation))
  const requests = cases.reduce((sum, one) => sum + one.requests, 0)
  const excuseItems = [...excuses].map(
    ([status, reason]) => `<li>${escaped(`${status} ${reason}`)}</li>`,
  )
  return `<style>${STYLE}</style>
<p>${requests} requests to ${escaped(url)}, seed ${seed}</p>
<table class="matrix">
<tr>
  <th>operation</th>
  ${statuses.map((name) => `<th>${name}</th>`).join('')}
  <th>events</th>
  <th>failed</th>
</tr>
${rows.map((row) => matrixRow(row, failures)).join('\n')}
</table>
<p>
  The number of occurrences of each documented status and event.
  <span class="missing">0</span>: must occur, but did not.
  <span class="excused">–</span>: need not occur, for one of these reasons:
</p>
<ul>${excuseItems.join('')}</ul>
${promisesSection(cells)}`
}

const STYLE = `
.matrix { display: block; overflow-x: auto }
.matrix :is(th, td) { text-align: center; white-space: nowrap }
.matrix th[scope=row] { text-align: left }
.matrix td.events { text-align: left; white-space: normal }
.seen { background: #2a83; }
.excused { background: #8883; }
.missing { background: #d335; font-weight: bold }
.events span { border-radius: .3rem; padding: 0 .3rem; display: inline-block }
`

function matrixRow({ operation, cells, events }: MatrixRow, failures: string[]): string {
  const failed = failures.filter((id) => id === operation).length
  return `<tr>
  <th scope="row">${operation}</th>
  ${cells.map(statusCell).join('')}
  <td class="events">${events.map(eventLabel).join(' ')}</td>
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
