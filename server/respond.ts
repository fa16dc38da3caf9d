/** Turns a handler's result into the HTTP response: status, headers, body. */
import { type OperationId, type OperationRow, operations } from '../generated/operations.ts'
import { isFile } from '../handlers/call.ts'
import { ifNoneMatchNames, recordTagOf } from '../operations/etag.ts'
import type { ResponseChecker } from '../operations/response-check.ts'
import type { StoredResponse } from '../records/idempotency-keys.ts'
import type { ListPage } from '../records/list.ts'
import type { Context, Next } from './context.ts'

/** Throws `ContractViolation` for a status or headers that break the contract, when the contract is
 *  enforced. `execute` has checked the body. Responses with a file are not checked. */
export function sendResult(
  { checkResponse }: { checkResponse: ResponseChecker },
  id: OperationId,
  ctx: Context,
  result: unknown,
  query: Record<string, unknown> = {},
): void {
  const operation: OperationRow = operations[id]
  if (isFile(result)) {
    // Set before the body, or Koa sets a type itself.
    ctx.set(result.headers)
    ctx.status = operation.success
    ctx.body = result.stream
    return
  }
  if (operation.success === 204) {
    ctx.body = null
    ctx.status = 204
  } else {
    const text = JSON.stringify(selectFields(result, query))
    if (operation.etag) {
      const record = { ...(result as object), ...secretsAsNull(operation) }
      ctx.set('ETag', recordTagOf(record, query.include as string[]))
    }
    if (operation.location) ctx.set('Location', `${ctx.path}/${(result as { id: string }).id}`)
    if ('page[after]' in operation.query) setLinkToNextPage(ctx, result)
    sendJson(ctx, operation.success, text)
    if (operation.access === 'read' && operation.etag && isNotModified(ctx)) {
      ctx.body = null
      ctx.status = 304
    }
  }
  const { status, response, state } = ctx
  checkResponse(id, { status, headers: response.headers }, state.requestId)
}

/** Reduces each record to the fields that `fields` names. `id` and embedded records are always there. */
export function selectFields(
  result: unknown,
  { fields, include = [] }: Record<string, unknown>,
): unknown {
  if (fields === undefined) return result
  const names = new Set(['id', ...(fields as string[]), ...(include as string[])])
  const select = (record: object): object =>
    Object.fromEntries(Object.entries(record).filter(([name]) => names.has(name)))
  const { data, meta } = result as Partial<ListPage<object>>
  return meta ? { data: data?.map(select), meta } : select(result as object)
}

function isNotModified(ctx: Context): boolean {
  const header = ctx.get('If-None-Match')
  return header !== '' && ifNoneMatchNames(header, ctx.response.get('ETag'))
}

/** Sets `Link` (RFC 8288) to the URL of the request with the cursor of the page. The last page has
 *  none. Like `Location`, the URL is relative: only the client knows by which host it arrived. */
export function setLinkToNextPage(ctx: Context, page: unknown): void {
  const { next_cursor } = (page as { meta: { next_cursor: string | null } }).meta
  if (next_cursor === null) return
  // Encodes what a client may have sent as it is, for example `>`. Keeps commas, which separate values.
  const { search } = new URL(ctx.url, 'http://localhost')
  const nameOf = (part: string): string => decodeURIComponent(part.split('=')[0] ?? '')
  const others = search
    .slice(1)
    .split('&')
    .filter((part) => !['', 'page[number]', 'page[after]'].includes(nameOf(part)))
  const query = [...others, `page%5Bafter%5D=${next_cursor}`].join('&')
  ctx.set('Link', `<${ctx.path}?${query}>; rel="next"`)
}

export function sendJson(ctx: Context, status: number, text: string): void {
  ctx.status = status
  // Set before the body, or Koa adds a charset, which JSON does not have (RFC 8259 §11).
  ctx.set('Content-Type', 'application/json')
  ctx.body = text
}

/** The JSON text with null for each field that is shown once. */
function withoutSecrets(operation: OperationRow, text: string): string {
  if (operation.shownOnce.length === 0) return text
  return JSON.stringify({ ...JSON.parse(text), ...secretsAsNull(operation) })
}

function secretsAsNull({ shownOnce }: OperationRow): Record<string, null> {
  return Object.fromEntries(shownOnce.map((name) => [name, null]))
}

/** The response in the form that is stored for repeats with the same Idempotency-Key. */
export function storableResponse(ctx: Context, operation: OperationRow): StoredResponse {
  const headers: Record<string, string> = {}
  for (const name of ['Location', 'ETag']) {
    const value = ctx.response.get(name)
    if (value !== '') headers[name] = value
  }
  const body = typeof ctx.body === 'string' ? withoutSecrets(operation, ctx.body) : ''
  return { status: ctx.status, headers, body }
}

export function respondFromStore(ctx: Context, { status, headers, body }: StoredResponse): void {
  ctx.set(headers)
  ctx.set('Idempotent-Replayed', 'true')
  sendJson(ctx, status, body)
}

/** The status of a handler that is not implemented. The contract does not have this status. */
const NOT_IMPLEMENTED = 501

/** Koa middleware around `respondToErrors`: checks error responses. Throws `ContractViolation`
 *  when the contract is enforced. */
export function checkErrorResponses(checkResponse: ResponseChecker) {
  return async (ctx: Context, next: Next): Promise<void> => {
    await next()
    const { status, body, response, state } = ctx
    const { operationId, requestId } = state
    const isContractError = status >= 400 && status !== NOT_IMPLEMENTED
    if (operationId === undefined || !isContractError || typeof body !== 'string') return
    const headers = response.headers
    checkResponse(operationId, { status, headers, body: JSON.parse(body) }, requestId)
  }
}
