/** The page of an API request: who sent it, its bodies, and a curl command that repeats it. */
import { resources } from '../../../generated/resources.ts'
import {
  CUT,
  findRequest,
  MAX_PATH_CHARACTERS,
  type RequestDetail,
  type RequestEntry,
  type StoredHeader,
} from '../../../records/request-log.ts'
import type { Module } from '../../../records/users.ts'
import { apiCurlCommand } from '../../shared/curl.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { BASH_NOTE, needsBash } from '../../shared/shell.ts'
import { parseRowView, type RowView, rowHeading } from '../expandable-row.ts'
import { absoluteTime, bytes, capital, counted, duration } from '../format.ts'
import { isJson, jsonBlock } from '../json-block.ts'
import {
  type ConsolePage,
  canManageKeys,
  get,
  isOwner,
  isOwnerOrAdmin,
  type Route,
  type Visit,
} from '../page.ts'
import { SHORT_MODULE_LABELS } from '../people/access-form.ts'
import { withQuery } from '../query.ts'
import { card, codeBlock, copyableId, type Fact, facts, note } from '../ui.ts'
import { findHiddenModule, isQueryHidden, redactQuery } from './request-access.ts'
import { requestLinks } from './request-links.ts'
import { lookUpOperation, requestsTable, statusLabel } from './request-row.ts'

export const requestRoutes: Route[] = [get('/requests/:request', isOwnerOrAdmin, requestPage)]

/** The details of a request. When a row of the list opens or closes, htmx asks for `?row=` and gets the
 *  row of the list. */
async function requestPage(visit: Visit): Promise<ConsolePage> {
  const { scope, params, query, ctx } = visit
  const found = (await findRequest(scope, params.request ?? '')) ?? ctx.throw(404)
  const request = redactQuery(visit.user, found)
  const { status, durationMs } = request
  const view = parseRowView(query.get('row'))
  const detail = view === 'closed' ? undefined : await requestDetail(visit, request, view)
  return {
    title: requestTitle(request),
    lead: html`${statusLabel(status)} in ${duration(durationMs)}`,
    crumbs: [{ label: 'API requests', to: '/requests' }],
    body: card(
      '',
      view === 'alone'
        ? html`<div class="card-body detail">${detail}</div>`
        : requestsTable(visit.now, [{ request, view, detail }]),
    ),
  }
}

/** With the path of the operation, such as `/tasks/{task}`, because IDs are long. */
export function requestTitle({ operationId, method, path }: RequestEntry): string {
  return `${method} ${lookUpOperation(operationId)?.path ?? path.replace(/\?.*/, '')}`
}

async function requestDetail(visit: Visit, request: RequestDetail, view: RowView): Promise<Html> {
  const hiddenModule = findHiddenModule(visit.user, request.operationId)
  return html`<div class="request-detail">
    ${requestFacts(visit, request, await requestLinks(visit, request))}
    ${hiddenModule ? hiddenNote(hiddenModule) : bodiesOrNote(request, view)}
    ${!isQueryHidden(visit.user, request.operationId) && headers(request)}
    ${curlSection(visit, request, view)}
  </div>`
}

function requestFacts({ user: reader }: Visit, request: RequestDetail, links: Fact[]): Html {
  const { requestId, operationId, method, path, user, apiKey, ip, createdAt, repeats } = request
  const operation = lookUpOperation(operationId)
  // A former key has no prefix.
  const hasKeyPage = canManageKeys(reader) && apiKey.tokenPrefix !== ''
  const filter = (values: Record<string, string>): string =>
    `/console${withQuery('/requests', values)}`
  return facts([
    ['Request ID', copyableId(requestId)],
    [
      'Operation',
      operation ? html`<a href="/docs/operations/${operationId}">${operation.summary}</a>` : 'None',
    ],
    [
      'Path',
      html`<span class="mono">${method} ${path}</span>
        ${isPathCut(request) && html`<span class="muted">Truncated after 2 KiB.</span>`}`,
    ],
    ...links,
    ['Time', absoluteTime(createdAt)],
    [
      'User',
      html`<a href="${filter({ user: user.id })}">${user.fullName}</a>
        ${isOwner(reader) && html`· <a href="/console/people/${user.id}">Access</a>`}`,
    ],
    [
      'API key',
      html`<a href="${filter({ key: apiKey.id })}">${apiKey.name}</a>
        <span class="mono muted">${apiKey.tokenPrefix}…</span>
        ${hasKeyPage && html`· <a href="/console/api-keys/${apiKey.id}">Settings</a>`}`,
    ],
    ['IP address', html`<a class="mono" href="${filter({ ip })}">${ip}</a>`],
    repeats > 0 && repeatsFact(repeats),
  ])
}

function repeatsFact(repeats: number): Fact {
  const requests = counted(repeats, 'further request')
  return [
    'Repeats',
    `${requests} with this key got 429 within a minute. They are counted, but not stored.`,
  ]
}

function isPathCut({ path }: RequestEntry): boolean {
  return path.length === MAX_PATH_CHARACTERS + CUT.length && path.endsWith(CUT)
}

function hiddenNote(module: Module): Html {
  return note(
    'busy',
    'The bodies of this request are hidden because you have no access to ' +
      `${SHORT_MODULE_LABELS[module]}. Ask the Account Owner for access.`,
  )
}

function bodiesOrNote(request: RequestDetail, view: RowView): Html {
  if (request.omittedBytes === 0) return bodies(request, view)
  return note(
    'busy',
    `The bodies of this request (${bytes(request.omittedBytes)}) are not stored: ` +
      'your account has reached the limit of the request log for the day (UTC).',
  )
}

function bodies(request: RequestDetail, view: RowView): Html {
  const { requestBody, responseBody, status, operationId } = request
  const isFile =
    status === 200 &&
    resources.some(({ operations: { file } }) => file !== null && file === operationId)
  const noResponse = isFile ? 'Files are not stored in the log.' : 'No response body'
  return html`<div class="bodies">
    <div>
      ${rowHeading(view, 'Request body')}
      ${bodyBlock(requestBody, 'request body', 'No request body')}
    </div>
    <div>
      ${rowHeading(view, 'Response body')}
      ${bodyBlock(responseBody, 'response body', noResponse)}
    </div>
  </div>`
}

/** The header `Link` has the query, so users who may not see the query do not see the headers. */
function headers({ requestHeaders, responseHeaders }: RequestDetail): Html {
  return html`<details>
    <summary>Headers</summary>
    <div class="bodies">
      ${headerBlock(requestHeaders, 'request headers')}
      ${headerBlock(responseHeaders, 'response headers')}
    </div>
  </details>`
}

function headerBlock(stored: StoredHeader[] | null, label: string): Html {
  const lines = stored?.map(([name, value]) => `${name}: ${value}`).join('\n')
  return html`<div>
    <p>${capital(label)}</p>
    ${lines === undefined ? html`<p class="muted">Not stored</p>` : codeBlock(lines, label)}
  </div>`
}

function bodyBlock(text: string | null, label: string, none: string): Content {
  if (text === null || text === '') return html`<p class="muted">${none}</p>`
  return [
    jsonBlock(text, label),
    isTruncated(text) && html`<p class="muted">Truncated after 64 KiB.</p>`,
  ]
}

/** The log cuts a body after 64 KiB. What it stores can be a little shorter, because it splits no
 *  character and masks API keys and signing secrets. */
const MIN_TRUNCATED_BYTES = 63 * 1024

function isTruncated(text: string): boolean {
  return Buffer.byteLength(text) >= MIN_TRUNCATED_BYTES && !isJson(text)
}

/** Why a curl command could not repeat the request. Undefined if its path and its body are stored
 *  completely. */
function findUnstoredPart(request: RequestDetail, body: string | null): string | undefined {
  if (isPathCut(request)) return 'The path is longer than 2 KiB'
  if (body !== null && isTruncated(body)) return `The request body is ${bytes(64 * 1024)} or longer`
  const mayHaveBody = request.method !== 'GET' && request.method !== 'DELETE'
  return request.omittedBytes > 0 && mayHaveBody ? 'The request body is not stored' : undefined
}

function curlSection({ config, user }: Visit, request: RequestDetail, view: RowView): Content {
  const { method, path, operationId } = request
  const body = request.requestBody === '' ? null : request.requestBody
  const heading = rowHeading(view, 'As curl')
  const unstored = findUnstoredPart(request, body)
  if (unstored !== undefined) {
    const text = `${unstored}, so the request cannot be repeated from here.`
    return html`<div>${heading}<p class="muted">${text}</p></div>`
  }
  if (body !== null && findHiddenModule(user, operationId)) return false
  const hasHiddenQuery = path.includes('?') && isQueryHidden(user, operationId)
  const url = config.baseUrl + (hasHiddenQuery ? path.replace(/\?.*/s, '') : path)
  const notes = [
    'Set MUSTER_API_KEY to an API key first.',
    hasHiddenQuery && ' The query is left out because it can contain records that you cannot see.',
    needsBash(url, body) && ` ${BASH_NOTE}`,
  ]
  return html`<div>
    ${heading}
    ${codeBlock(apiCurlCommand({ method, url, body }), 'curl command')}
    <p class="muted">${notes}</p>
  </div>`
}
