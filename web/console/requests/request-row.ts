/** The table of API requests. Each request has its own `tbody`, which opens in place. */
import { type OperationId, type OperationRow, operations } from '../../../generated/operations.ts'
import type { RequestEntry } from '../../../records/request-log.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { detailRow, type RowView, rowToggle } from '../expandable-row.ts'
import { duration } from '../format.ts'
import { timeElement } from '../ui.ts'

export function lookUpOperation(id: string | null): OperationRow | undefined {
  return id !== null && Object.hasOwn(operations, id) ? operations[id as OperationId] : undefined
}

export function operationName({ method, path }: OperationRow): string {
  return `${method.toUpperCase()} ${path}`
}

export interface RequestRow {
  request: RequestEntry
  view: RowView
  /** Shown below the row if it is open. */
  detail?: Content
}

const COLUMNS = 6

export function requestsTable(now: Date, rows: RequestRow[]): Html {
  return html`<div class="table-frame" role="region" aria-label="Requests" tabindex="0">
    <table class="requests">
      <thead>
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Request</th>
          <th scope="col">User and key</th>
          <th scope="col">IP address</th>
          <th scope="col" class="number">Duration</th>
          <th scope="col">Time</th>
        </tr>
      </thead>
      ${rows.map((row) => requestRow(row, now))}
    </table>
  </div>`
}

function requestRow({ request, view, detail }: RequestRow, now: Date): Html {
  const { id, status, user, apiKey, ip, durationMs, createdAt } = request
  return html`<tbody id="request-${id}"${view !== 'closed' && html` class="opened"`}>
    <tr>
      <td>${statusLabel(status)}</td>
      <td>${requestCell(request, view)}</td>
      <td data-label="User and key">
        <span class="who">
          <span>${user.fullName}</span>
          <small class="muted">${apiKey.name}</small>
        </span>
      </td>
      <td data-label="IP address"><span class="mono muted">${ip}</span></td>
      <td class="number" data-label="Duration">${duration(durationMs)}</td>
      <td class="nowrap" data-label="Time">${timeElement(createdAt, now)}</td>
    </tr>
    ${detailRow(COLUMNS, detail)}
  </tbody>`
}

export function statusLabel(status: number): Html {
  const tone = status < 400 ? 'ok' : status < 500 ? 'warn' : 'bad'
  return html`<span class="status ${tone}">${status}</span>`
}

function requestCell({ id, method, path }: RequestEntry, view: RowView): Html {
  const label = html`<span class="method">${method}</span>
    <span class="path" title="${path}">${path}</span>`
  if (view === 'alone') return html`<span class="request mono">${label}</span>`
  return rowToggle(
    {
      id,
      rowId: `request-${id}`,
      path: `/console/requests/${id}`,
      view,
      className: 'request mono',
    },
    label,
  )
}
