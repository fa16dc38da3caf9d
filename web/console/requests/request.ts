/** One request: its row in the list, and what was sent and answered. A request has a `tbody` of its own, which opens in place. */

import { type Operation, type OperationId, operations } from '../../../generated/operations.ts'
import { resources } from '../../../generated/resources.ts'
import { findRequest, type RequestDetail, type RequestEntry } from '../../../records/request-log.ts'
import type { Module, User } from '../../../records/users.ts'
import { apiCurlCommand } from '../../shared/curl.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { BASH_NOTE, needsBash } from '../../shared/shell.ts'
import { isJson, jsonBlock } from '../json-block.ts'
import { get, hasPermission, isAdmin, type Page, type Route, type Visit } from '../page.ts'
import { bytes, card, codeBlock, duration, facts, idOf, note, timeOf, utc } from '../ui.ts'

export const requestRoutes: Route[] = [get('/requests/:request', isAdmin, requestPage)]

type RowView = 'closed' | 'open' | 'alone'

/** Alone on its page. The list takes the row from here when it is opened or closed. */
async function requestPage(visit: Visit): Promise<Page> {
  const { scope, params, query, ctx, user } = visit
  const found = (await findRequest(scope, params.request?.toLowerCase() ?? '')) ?? ctx.throw(404)
  const request = shownTo(user, found)
  const row = query.get('row')
  const view: RowView = row === 'open' || row === 'closed' ? row : 'alone'
  return {
    title: titleOf(request),
    lead: html`${utc(request.createdAt)}, by ${request.user.fullName} with the key ${request.apiKey.name}`,
    crumbs: [{ label: 'API Dashboard', to: '/requests' }],
    body: card(
      '',
      requestsTable(visit.now, [
        {
          request,
          view,
          detail:
            view === 'closed'
              ? undefined
              : detailOf(visit, request, view === 'alone' ? 'h2' : 'h3'),
        },
      ]),
    ),
  }
}

/** With the template of the path: ids are long. */
function titleOf({ operationId, method, path }: RequestEntry): string {
  const operation = operationOf(operationId)
  return `${method} ${operation ? operation.path : path.replace(/\?.*/, '')}`
}

export function operationOf(id: string | null): Operation | undefined {
  return id !== null && Object.hasOwn(operations, id) ? operations[id as OperationId] : undefined
}

export function operationName({ method, path }: Operation): string {
  return `${method.toUpperCase()} ${path}`
}

export interface RequestRow {
  request: RequestEntry
  view: RowView
  /** Under the row, where it is open. */
  detail?: Content
}

const COLUMNS = 6

export function requestsTable(now: Date, rows: RequestRow[]): Html {
  return html`<div class="table-frame" role="region" aria-label="Requests" tabindex="0"><table class="requests"><thead><tr><th scope="col">Status</th><th scope="col">Request</th><th scope="col">User and key</th><th scope="col">IP</th><th scope="col" class="number">Took</th><th scope="col">Time</th></tr></thead>${rows.map((row) => requestRow(row, now))}</table></div>`
}

function requestRow({ request, view, detail }: RequestRow, now: Date): Html {
  const { id, status, user, apiKey, ip, durationMs, createdAt } = request
  return html`<tbody id="request-${id}"${view !== 'closed' && html` class="opened"`}><tr><td>${statusOf(status)}</td><td>${requestCell(request, view)}</td><td data-label="User and key"><span class="who"><span>${user.fullName}</span><small class="muted">${apiKey.name}</small></span></td><td data-label="IP"><span class="mono muted">${ip}</span></td><td class="number" data-label="Took">${duration(durationMs)}</td><td class="nowrap" data-label="Time">${timeOf(createdAt, now)}</td></tr>${detail !== undefined && html`<tr class="detail"><td colspan="${COLUMNS}">${detail}</td></tr>`}</tbody>`
}

/** Never by colour alone: the number says it. */
export function statusOf(status: number): Html {
  return html`<span class="status ${status < 400 ? 'ok' : status < 500 ? 'warn' : 'bad'}">${status}</span>`
}

function requestCell({ id, method, path }: RequestEntry, view: RowView): Html {
  const text = html`<span class="method">${method}</span> <span class="path" title="${path}">${path}</span>`
  if (view === 'alone') return html`<span class="request mono">${text}</span>`
  const address = `/console/requests/${id}`
  return html`<a class="request mono toggle" id="toggle-${id}" href="${address}" aria-expanded="${view === 'open' ? 'true' : 'false'}" hx-get="${address}?row=${view === 'open' ? 'closed' : 'open'}" hx-target="#request-${id}" hx-select="#request-${id}" hx-swap="outerHTML ignoreTitle:true">${text}</a>`
}

/** Below the heading of the page, or of the list. */
type Heading = 'h2' | 'h3'

const headed = (heading: Heading, text: string): Html =>
  heading === 'h2' ? html`<h2>${text}</h2>` : html`<h3>${text}</h3>`

function detailOf(visit: Visit, request: RequestDetail, heading: Heading): Html {
  const { requestId, operationId, method, path, user, apiKey, ip, createdAt, durationMs } = request
  const operation = operationOf(operationId)
  const hidden = hiddenModule(visit.user, operationId)
  const mine = (name: string, value: string): string =>
    `/console/requests?${new URLSearchParams({ [name]: value })}`
  return html`<div class="request-detail">${facts([
    ['Request id', idOf(requestId)],
    [
      'Operation',
      operation ? html`<a href="/docs/operations/${operationId}">${operation.summary}</a>` : 'None',
    ],
    ['Path', html`<span class="mono">${method} ${path}</span>`],
    ['Time', html`${utc(createdAt)}, ${duration(durationMs)}`],
    ['User', html`<a href="${mine('user', user.id)}">${user.fullName}</a>`],
    [
      'API key',
      html`<a href="${mine('key', apiKey.id)}">${apiKey.name}</a> <span class="mono muted">${apiKey.tokenPrefix}…</span>`,
    ],
    ['IP address', html`<a class="mono" href="${mine('ip', ip)}">${ip}</a>`],
  ])}${
    hidden
      ? note(
          'busy',
          `Bodies hold records. You do not see those of this request because your permission for ${MODULES[hidden]} is “none”. The Account Owner can change that.`,
        )
      : bodiesOf(request, heading)
  }${curlOf(visit, request, heading)}</div>`
}

const MODULES: Record<Module, string> = {
  participants: 'Participants',
  tasks: 'Tasks',
  jobs: 'Jobs',
  exports: 'Exports',
  finance: 'Finance',
}

/** The module whose records are in the bodies, where this user may not read it. What belongs to no module is for all who are here. */
function hiddenModule(user: User, operationId: string | null): Module | undefined {
  const resource = resources.find((one) =>
    Object.values(one.operations).some((id) => id === operationId),
  )
  return resource && !hasPermission(resource.module, 'read')(user, {}) ? resource.module : undefined
}

/** May this user read all that the API holds, and so whatever somebody has looked for in it? */
export function seesAllQueries(user: User): boolean {
  return resources.every(({ module }) => hasPermission(module, 'read')(user, {}))
}

/** A query can name what is in records, as bodies do. What led to no operation may have been meant for any. */
function isQueryHidden(user: User, operationId: string | null): boolean {
  return operationId === null
    ? !seesAllQueries(user)
    : hiddenModule(user, operationId) !== undefined
}

/** A request with so much of its path as this user may see. */
export function shownTo<T extends RequestEntry>(user: User, request: T): T {
  return isQueryHidden(user, request.operationId)
    ? { ...request, path: request.path.replace(/\?.*/s, '?…') }
    : request
}

function bodiesOf(
  { requestBody, responseBody, status, operationId }: RequestDetail,
  heading: Heading,
): Html {
  const isFile =
    status === 200 &&
    resources.some(({ operations: { file } }) => file !== null && file === operationId)
  return html`<div class="bodies"><div>${headed(heading, 'Request body')}${bodyOf(requestBody, 'request body', 'There was none.')}</div><div>${headed(heading, 'Response body')}${bodyOf(responseBody, 'response body', isFile ? 'A file: it is not kept here.' : 'There was none.')}</div></div>`
}

function bodyOf(text: string | null, what: string, none: string): Html {
  if (text === null || text === '') return html`<p class="muted">${none}</p>`
  return html`${jsonBlock(text, what)}${isCut(text) && html`<p class="muted">Cut at 64 KiB.</p>`}`
}

/** Of what is longer the first 64 KiB are kept, or a little less: a character is not divided, and what looks like a key is made shorter. */
const NEARLY_ALL_BYTES = 63 * 1024

function isCut(text: string): boolean {
  return Buffer.byteLength(text) >= NEARLY_ALL_BYTES && !isJson(text)
}

function curlOf({ config, user }: Visit, request: RequestDetail, heading: Heading): Html {
  const { method, path, operationId } = request
  const body = request.requestBody === '' ? null : request.requestBody
  if (body !== null && isCut(body))
    return html`<div>${headed(heading, 'As curl')}<p class="muted">The request body is ${bytes(64 * 1024)} or longer and was cut, so the same request cannot be made from here.</p></div>`
  if (body !== null && hiddenModule(user, operationId)) return html``
  const isCutShort = path.includes('?') && isQueryHidden(user, operationId)
  const url = config.baseUrl + (isCutShort ? path.replace(/\?.*/s, '') : path)
  const command = apiCurlCommand({ method, url, body })
  return html`<div>${headed(heading, 'As curl')}${codeBlock(command, 'curl command')}<p class="muted">Put an API key in the environment as MUSTER_API_KEY.${isCutShort && ' The query is left out: it can name what is in records that you do not see.'}${needsBash(url, body) && ` ${BASH_NOTE}`}</p></div>`
}
