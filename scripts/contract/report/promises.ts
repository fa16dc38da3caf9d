/** Which promises of the contract a run tested: as text, and as a section of the HTML report. */
import { escaped } from '../../report/junit.ts'
import { type Cell, isExcused, isMissing } from '../coverage/coverage.ts'

/** Counts the promises, and names the claims of those that were not tested and need not be, by
 *  reason. The matrix has the reasons for statuses. */
export function formatPromises(cells: Cell[]): string {
  const tested = cells.filter(({ seen }) => seen > 0).length
  const excused = cells.filter((cell) => isExcused(cell) && cell.kind !== 'status')
  const groups = Map.groupBy(excused, ({ reason }) => (reason ?? '').replace(/\.$/, ''))
  const untested = [...groups].map(
    ([reason, own]) => `${[...new Set(own.map(({ claim }) => claim))].join(', ')} (${reason})`,
  )
  const others = untested.length > 0 ? ` Not tested: ${untested.join('; ')}.` : ''
  return `${tested} of ${cells.length} promises of the contract tested.${others}`
}

export function promisesSection(cells: Cell[]): string {
  const rows = [...Map.groupBy(cells, ({ claim }) => claim)].map(([claim, own]) => {
    const tested = own.filter(({ seen }) => seen > 0).length
    const oracles = new Set(own.flatMap((cell) => Object.keys(cell.oracles)))
    return `<tr>
  <th scope="row">${escaped(claim)}</th>
  <td class="${classOf(own)}">${tested} of ${own.length}</td>
  <td class="events">${escaped([...oracles].join(', ') || 'none')}${untestedList(own)}</td>
</tr>`
  })
  return `<details><summary>${escaped(formatPromises(cells))}</summary>
<table class="matrix">
<tr><th>promise</th><th>tested</th><th>by</th></tr>
${rows.join('\n')}
</table>
</details>`
}

function classOf(cells: Cell[]): string {
  if (cells.some(isMissing)) return 'missing'
  return cells.some(isExcused) ? 'excused' : 'seen'
}

function untestedList(cells: Cell[]): string {
  const untested = cells.filter(({ seen }) => seen === 0)
  const items = untested.map(
    ({ operation, name, reason }) =>
      `<li>${escaped(`${operation} ${name}`.trim())}: ${escaped(reason ?? 'not tested')}</li>`,
  )
  if (items.length === 0) return ''
  return `<details><summary>${items.length} not tested</summary><ul>${items.join('')}</ul></details>`
}
