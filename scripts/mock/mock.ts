/** A mock of the API for the tests of API consumers. It validates requests as the service does, and
 *  responds with the examples of openapi.yaml, or with the records that requests created. */
import Koa, { type Context, type Middleware, type Next } from 'koa'
import type { Logger } from 'pino'
import { InvalidInput } from '../../errors.ts'
import { type OperationId, type OperationRow, operations } from '../../generated/operations.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { findBatch } from '../words/batches.ts'
import { readIncluded } from '../words/lists.ts'
import { asShownLater } from '../words/records.ts'
import { type BatchOutcome, type BatchParts, performBatch } from './batches.ts'
import { type Examples, readExamples } from './examples.ts'
import { type Change, type Cursors, MockRecords, type RecordCall } from './records.ts'

/** The parts of the service that the mock uses, so that both check requests alike. */
interface ServiceParts extends BatchParts, Cursors {
  acceptedHeaders: string
  assertHeaders: Middleware
  respondToErrors(log: Logger): Middleware
  crossOrigin(allowedOrigin: () => string, acceptedHeaders: string): Middleware
  identify: Middleware
  ifMatchHolds(header: string | undefined, etag: string): boolean
  ifNoneMatchNames(header: string, etag: string): boolean
  recordTagOf(record: object, embedded: string[]): string
  selectFields(result: unknown, query: Record<string, unknown>): unknown
  /** Throws the errors of the service for invalid input. */
  readInput(
    ctx: Context,
    id: OperationId,
  ): Promise<{ input: { body?: object; query?: object }; mergePatch?: object }>
  /** Sets the header `Link` for a page of a list. */
  setLinkToNextPage(ctx: Context, page: unknown): void
  /** Throws the errors of the service for unknown paths and methods. */
  serveApi(api: {
    requireCaller(ctx: Context): string
    operationIds: OperationId[]
    serve(id: OperationId, ctx: Context): Promise<void>
  }): Middleware
}

/** For a mock that keeps the records that requests create. */
export interface MockState {
  /** Called after each request that created, updated or deleted a record. */
  onChange?(operation: Operation, change: Change, request: Context): void
}

interface MockOptions {
  service: ServiceParts
  log: Logger
  /** The contract from which the validators were generated. */
  contract: Contract
  /** Called after each response. */
  onResponse?: (ctx: Context) => void
  /** Undefined: every response is an example. */
  state?: MockState
}

interface Mock {
  service: ServiceParts
  contract: Contract
  examples: Examples
  state: (MockState & { records: MockRecords }) | undefined
}

const operationIds = Object.keys(operations) as OperationId[]

/** Throws `Refused` if an example breaks the contract. */
export async function createMock({
  service,
  log,
  contract,
  onResponse,
  state,
}: MockOptions): Promise<Koa> {
  const examples = readExamples(contract)
  const mock: Mock = {
    service,
    contract,
    examples,
    state: state && { ...state, records: new MockRecords(contract, service) },
  }
  const app = new Koa()
  app.on('error', (error: Error) => log.error({ err: error }, 'A response could not be sent'))
  app.use(service.identify)
  app.use(async (ctx, next) => {
    await next()
    onResponse?.(ctx)
  })
  app.use(service.crossOrigin(() => '*', `${service.acceptedHeaders}, Prefer`))
  app.use((ctx, next) => withRequiredHeaders(ctx, next, examples))
  app.use(service.respondToErrors(log))
  app.use(service.assertHeaders)
  const serve = (id: OperationId, ctx: Context): Promise<void> => respond(mock, ctx, id)
  app.use(service.serveApi({ requireCaller, operationIds, serve }))
  return app
}

function requireCaller(ctx: Context): string {
  const [key] = /^Bearer +[^ ]+$/i.exec(ctx.get('Authorization')) ?? []
  return key ?? ctx.throw(401, 'The API key is missing or malformed.')
}

/** Adds the required headers that the mock has not set, for example the rate limit. */
async function withRequiredHeaders(ctx: Context, next: Next, examples: Examples): Promise<void> {
  await next()
  const id: OperationId | undefined = ctx.state.operationId
  if (id === undefined) return
  for (const [name, value] of Object.entries(examples.find(id, ctx.status).headers))
    if (!ctx.res.hasHeader(name)) ctx.set(name, value)
}

async function respond(mock: Mock, ctx: Context, id: OperationId): Promise<void> {
  const { service, contract, examples, state } = mock
  const operation: OperationRow = operations[id]
  const request = await service.readInput(ctx, id)
  const preferred = readPreference(ctx, id, operation, examples)
  const prefersExample = preferred.status !== undefined || preferred.name !== undefined
  const call = state && !prefersExample ? toRecordCall(contract, ctx, id, request) : undefined
  if (call) state?.records.assertFound(call.operation, call.path)
  const stored = call && state?.records.find(call)
  const current = stored ? jsonBody(stored) : currentExample(ctx, operation, examples)
  const { body: sent } = request.input
  if (sent && !operation.batch) {
    const before = current?.value as object | undefined
    service.assertRecordSize({ record: { ...before, ...sent }, before, sent })
  }
  const query: Record<string, unknown> = { ...request.input.query }
  const embedded = readIncluded(contract, query)
  const tagOf = ({ value }: Body): string => service.recordTagOf(value as object, embedded)
  const currentTag = current && tagOf(current)
  const status =
    preferred.status ?? conditionalStatus(service, ctx, operation, currentTag) ?? operation.success
  const outcome = call && status === operation.success ? perform(mock, call) : undefined
  const body =
    outcome?.body === undefined
      ? exampleBody(ctx, id, examples, { status, name: preferred.name })
      : jsonBody(outcome.body)
  const isSelection = status === operation.success && 'fields' in query
  send(ctx, isSelection && body ? jsonBody(service.selectFields(body.value, query)) : body, status)
  if (status === 304 && currentTag !== null) ctx.set('ETag', currentTag)
  if (status !== operation.success) return
  if ('page[after]' in operation.query && body) service.setLinkToNextPage(ctx, body.value)
  if (operation.etag && body) {
    const later = call ? asShownLater(contract, call.operation, body.value as object) : body.value
    ctx.set('ETag', service.recordTagOf(later as object, embedded))
  }
  if (operation.location && body)
    ctx.set('Location', `${ctx.path}/${(body.value as { id: string }).id}`)
  for (const { operation, change } of outcome?.changes ?? [])
    state?.onChange?.(operation, change, ctx)
}

/** Undefined if the response is an example. */
function perform({ service, contract, state }: Mock, call: RecordCall): BatchOutcome | undefined {
  if (state === undefined) return undefined
  const { operation, sent } = call
  const batch = findBatch(contract, operation)
  if (batch) return performBatch(state.records, contract, service, batch, sent)
  const outcome = state.records.perform(call)
  if (outcome === undefined) return undefined
  const { body, change } = outcome
  return { body, changes: change ? [{ operation, change }] : [] }
}

/** Undefined if the contract does not have the operation. */
function toRecordCall(
  contract: Contract,
  ctx: Context,
  id: OperationId,
  { input, mergePatch }: Awaited<ReturnType<ServiceParts['readInput']>>,
): RecordCall | undefined {
  const operation = contract.operations.find((one) => one.id === id)
  if (operation === undefined) return undefined
  return {
    operation,
    path: ctx.state.pathParameters,
    query: { ...input.query },
    sent: { ...(mergePatch ?? input.body) },
    isMergePatch: mergePatch !== undefined,
  }
}

function send(ctx: Context, body: Body | null, status: number): void {
  if (body !== null) {
    // Set before the body, or Koa adds a charset.
    ctx.set('Content-Type', body.mediaType)
    ctx.body = body.text
  } else {
    ctx.body = null
  }
  // Set after the body: Koa turns an empty body into 204.
  ctx.status = status
}

interface Preference {
  status?: number
  name?: string
}

/** Reads `Prefer: code=404, example=name` (RFC 7240, with the names of Prism) and ignores other
 *  preferences. Throws `InvalidInput` for a response or example that the contract does not have. */
function readPreference(
  ctx: Context,
  id: OperationId,
  operation: OperationRow,
  examples: Examples,
): Preference {
  const preferences = parsePreferences(ctx.get('Prefer'))
  const [code, name] = [preferences.get('code'), preferences.get('example')]
  const status = code === undefined ? undefined : Number(code)
  if (status !== undefined && !operation.statuses.includes(status))
    refusePreference(id, `code=${code}`, operation.statuses)
  const names = examples.names(id, status ?? operation.success)
  if (name !== undefined && !names.includes(name)) refusePreference(id, `example=${name}`, names)
  const applied = [
    ...(code === undefined ? [] : [`code=${code}`]),
    ...(name === undefined ? [] : [`example=${name}`]),
  ]
  if (applied.length > 0) ctx.set('Preference-Applied', applied.join(', '))
  return { status, name }
}

/** `name`, `name=value` or `name="value"`, with commas or semicolons between them. */
const PREFERENCE = /(?:^|[,;])\s*([^\s=,;]+)\s*(?:=\s*(?:"([^"]*)"|([^\s,;]*)))?/g

/** The values by lower-case name. A preference without a value has an empty one. */
function parsePreferences(header: string): Map<string, string> {
  const preferences = new Map<string, string>()
  for (const [, name = '', quoted, plain] of header.matchAll(PREFERENCE))
    preferences.set(name.toLowerCase(), quoted ?? plain ?? '')
  return preferences
}

function refusePreference(
  id: OperationId,
  what: string,
  choices: readonly (string | number)[],
): never {
  const advice =
    choices.length === 0 ? 'that response has no named examples' : `use ${choices.join(', ')}`
  throw new InvalidInput({ Prefer: [`${id} does not have ${what}: ${advice}.`] })
}

/** The example of GET for the same path. Null if there is no such GET, or if its response has no
 *  ETag. */
function currentExample(ctx: Context, { path }: OperationRow, examples: Examples): Body | null {
  const id = operationIds.find(
    (other) => operations[other].path === path && operations[other].method === 'get',
  )
  return id !== undefined && operations[id].etag
    ? exampleBody(ctx, id, examples, { status: operations[id].success })
    : null
}

/** 304 or 412 if the request has a condition that fails, otherwise undefined. */
function conditionalStatus(
  { ifMatchHolds, ifNoneMatchNames }: ServiceParts,
  ctx: Context,
  { access, ifMatch }: OperationRow,
  etag: string | null,
): number | undefined {
  if (etag === null) return undefined
  const tags = ctx.get('If-None-Match')
  if (access === 'read' && tags !== '' && ifNoneMatchNames(tags, etag)) return 304
  return ifMatch && !ifMatchHolds(ctx.headers['if-match'], etag) ? 412 : undefined
}

interface Body {
  value: unknown
  text: string
  mediaType: string
}

function jsonBody(value: unknown): Body {
  return { value, text: JSON.stringify(value), mediaType: 'application/json' }
}

function exampleBody(
  ctx: Context,
  id: OperationId,
  examples: Examples,
  { status, name }: { status: number; name?: string },
): Body | null {
  const mediaTypes = examples.mediaTypes(id, status)
  const { mediaType, body } = examples.find(id, status, {
    name,
    mediaType: ctx.accepts(mediaTypes) || undefined,
  })
  if (mediaType === null) return null
  return {
    value: body,
    mediaType,
    text:
      typeof body === 'string' && mediaType !== 'application/json' ? body : JSON.stringify(body),
  }
}
