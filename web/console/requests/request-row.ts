/** The table of API requests. Each request has its own `tbody`, which opens in place. */
import { type OperationId, type OperationRow, operations } from '../../../generated/operations.ts'
import type { RequestEntry } from '../../../records/request-log.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { expandableRow, type RowView, rowToggle } from '../expandable-row.ts'
import { count, duration } from '../format.ts'
import { numberColumn, tableFrame, timeElement } from '../ui.ts'

export function lookUpOperation(id: string | null): OperationRow | undefined {
  return id !== null && Object.hasOwn(operations, id) ? operations[id as OperationId] : undefined
}

export function operationName({ method, path }: OperationRow): string {
  return `${method.toUpperCase()} ${path}`
}

export interface RequestRow {
  request: RequestEntry
  view: RowView
  detail?: Content
}

const COLUMNS = [
  'Status',
  'Request',
  'User and key',
  'IP address',
  numberColumn('Duration'),
  'Time',
]

export function requestsTable(now: Date, rows: RequestRow[]): Html {
  const bodies = rows.map((row) => requestRow(row, now))
  return tableFrame('Requests', COLUMNS, bodies, 'requests')
}

function requestRow({ request, view, detail }: RequestRow, now: Date): Html {
  const { id, status, repeats, user, apiKey, ip, durationMs, createdAt } = request
  const who = html`<span class="who">
    <span>${user.fullName}</span>
    <small class="muted">${apiKey.name}</small>
  </span>`
  const cells = [
    [statusLabel(status), repeats > 0 && html` <small class="muted">+${count(repeats)}</small>`],
    requestCell(request, view),
    who,
    html`<span class="mono muted">${ip}</span>`,
    duration(durationMs),
    html`<span class="nowrap">${timeElement(createdAt, now)}</span>`,
  ]
  return expandableRow(COLUMNS, { id: `request-${id}`, view, cells, detail })
}

export function statusLabel(status: number): Html {
  const tone = status < 400 ? 'ok' : status < 500 ? 'warn' : 'bad'
  return html`<span class="status ${tone}">${status}</span>`
}

function requestCell({ id, method, path }: RequestEntry, view: RowView): Html {
  const label = html`<span class="method">${method}</span>
    <span class="path" title="${path}">${path}</span>`
  const to = `/requests/${id}`
  return rowToggle({ rowId: `request-${id}`, to, view, className: 'request mono' }, label)
}
