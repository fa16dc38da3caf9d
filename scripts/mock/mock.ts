/** A mock of the API for the tests of API consumers. It validates requests as the service does, and
 *  responds with the examples of openapi.yaml. It has no state. */
import { readFileSync } from 'node:fs'
import Koa, { type Context, type Middleware, type Next } from 'koa'
import OpenAPIBackendModule, { type Document } from 'openapi-backend'
import type { Logger } from 'pino'
import { InvalidInput, Refused } from '../../errors.ts'
import { type OperationId, type OperationRow, operations } from '../../generated/operations.ts'
import { responses } from '../../generated/validators.js'

// The package is CommonJS: its default export is one level down.
const OpenAPIBackend = OpenAPIBackendModule.default ?? OpenAPIBackendModule

/** The parts of the service that the mock uses, so that both check requests alike. */
export interface ServiceParts {
  acceptedHeaders: string
  /** Throws what the service throws for a record that is too large. */
  assertRecordSize(write: { record: object; before: object | undefined; sent: object }): void
  respondToErrors(log: Logger): Middleware
  crossOrigin(allowedOrigin: () => string, acceptedHeaders: string): Middleware
  etagOf(representation: string): string
  /** Responds to OPTIONS itself, and then returns undefined. `assertAuthenticated` gets no ID when the method is
   *  unknown. */
  findOperation(
    ctx: Context,
    assertAuthenticated: (ctx: Context, id: OperationId | undefined) => void,
  ): OperationId | undefined
  identify: Middleware
  ifMatchHolds(header: string | undefined, etag: string): boolean
  ifNoneMatchHolds(header: string, etag: string): boolean
  /** Throws what the service throws for invalid input. */
  readInput(ctx: Context, id: OperationId): Promise<{ input: { input?: object } }>
}

export interface MockOptions {
  service: ServiceParts
  log: Logger
  /** Called after each response. */
  onResponse?: (ctx: Context) => void
  /** The OpenAPI document from which the validators were generated. Default: this installation's. */
  document?: unknown
}

const operationIds = Object.keys(operations) as OperationId[]

/** Throws `Refused` if an example breaks the contract. */
export async function createMock({
  service,
  log,
  onResponse,
  document = ownDocument(),
}: MockOptions): Promise<Koa> {
  const examples = await readExamples(document)
  const problems = operationIds.flatMap((id) => checkExamples(id, examples))
  if (problems.length > 0) throw new Refused(formatProblems(problems))

  const app = new Koa()
  app.on('error', (error: Error) => log.error({ err: error }, 'A response could not be sent'))
  app.use(service.identify)
  app.use(async (ctx, next) => {
    await next()
    onResponse?.(ctx)
  })
  app.use(service.crossOrigin(() => '*', `${service.acceptedHeaders}, Prefer`))
  app.use((ctx, next) => withDeclaredHeaders(ctx, next, examples))
  app.use(service.respondToErrors(log))
  app.use(async (ctx) => {
    const id = service.findOperation(ctx, assertAuthenticated)
    if (id !== undefined) await respond(service, ctx, id, examples)
  })
  return app
}

function assertAuthenticated(ctx: Context, id: OperationId | undefined): void {
  const row: OperationRow | undefined = id && operations[id]
  if (!row?.isPublic && !/^Bearer +[^ ]+$/i.test(ctx.get('Authorization')))
    ctx.throw(401, 'The API key is missing or malformed.')
}

const MAX_SHOWN_PROBLEMS = 10

function formatProblems(problems: string[]): string {
  const more =
    problems.length > MAX_SHOWN_PROBLEMS ? [`and ${problems.length - MAX_SHOWN_PROBLEMS} more`] : []
  return [
    'The mock cannot use the examples of openapi.yaml: they break the contract.',
    'Correct them. "muster lint" shows their lines. Problems:',
    ...problems.slice(0, MAX_SHOWN_PROBLEMS),
    ...more,
  ].join('\n')
}

function ownDocument(): unknown {
  return JSON.parse(readFileSync(new URL('../../generated/openapi.json', import.meta.url), 'utf8'))
}

/** The example of one response. */
interface Example {
  /** By lower-case name. */
  headers: Record<string, string>
  /** Null if the response has no body. */
  mediaType: string | null
  body: unknown
}

interface Examples {
  /** The names in `examples`. Empty if the response only has `example`. */
  names(id: OperationId, status: number): string[]
  mediaTypes(id: OperationId, status: number): string[]
  find(id: OperationId, status: number, options?: { name?: string; mediaType?: string }): Example
}

interface DeclaredResponse {
  headers?: Record<string, { example?: unknown; required?: boolean }>
  content?: Record<string, DeclaredMedia>
}

interface DeclaredMedia {
  example?: unknown
  examples?: Record<string, { value?: unknown }>
}

async function readExamples(document: unknown): Promise<Examples> {
  // A copy: `init` replaces references by their targets.
  const api = new OpenAPIBackend({
    definition: structuredClone(document) as Document,
    quick: true,
    validate: false,
  })
  await api.init()
  // `getOperation` builds all operations for each look-up, which takes quadratic time in all.
  const known = new Map(
    api.router.getOperations().map(({ operationId, responses }) => [operationId, responses]),
  )
  const declared = (id: OperationId, status: number): DeclaredResponse =>
    (known.get(id)?.[status] ?? {}) as DeclaredResponse
  const mediaTypes: Examples['mediaTypes'] = (id, status) =>
    Object.keys(declared(id, status).content ?? {})
  return {
    mediaTypes,
    names: (id, status) =>
      Object.values(declared(id, status).content ?? {}).flatMap(({ examples = {} }) =>
        Object.keys(examples),
      ),
    find(id, status, { name, mediaType = mediaTypes(id, status)[0] } = {}) {
      // An optional header would be wrong here, for example Idempotent-Replayed.
      const required = Object.entries(declared(id, status).headers ?? {}).filter(
        ([, header]) => header.required,
      )
      const headers = Object.fromEntries(
        required.map(([header, { example }]) => [header.toLowerCase(), String(example ?? '')]),
      )
      if (mediaType === undefined) return { headers, mediaType: null, body: undefined }
      return { headers, mediaType, body: findBody(declared(id, status).content?.[mediaType], name) }
    },
  }
}

/** The example of that name, or the first. `muster lint` reports a body without an example. */
function findBody({ example, examples = {} }: DeclaredMedia = {}, name?: string): unknown {
  const named = name === undefined ? undefined : examples[name]
  return named ? named.value : (example ?? Object.values(examples)[0]?.value)
}

function checkExamples(id: OperationId, examples: Examples): string[] {
  return operations[id].statuses.flatMap((status) => {
    const names = [undefined, ...examples.names(id, status)]
    const mediaTypes = [undefined, ...examples.mediaTypes(id, status)]
    const found = names.flatMap((name) =>
      mediaTypes.flatMap((mediaType) =>
        checkExample(id, status, examples.find(id, status, { name, mediaType })),
      ),
    )
    return [...new Set(found)].map((problem) => `${id} ${status}${problem}`)
  })
}

function checkExample(
  id: OperationId,
  status: number,
  { headers, mediaType, body }: Example,
): string[] {
  const expected = responses[id][status]
  const parts = [
    { validator: expected?.headers, value: headers, what: 'headers' },
    {
      validator: mediaType === null ? null : expected?.body?.[mediaType],
      value: body,
      what: 'body',
    },
  ]
  return parts.flatMap(({ validator, value, what }) => {
    if (!validator || validator(value)) return []
    const [error] = validator.errors ?? []
    return [`: ${what}${error?.instancePath ?? ''} ${error?.message}`]
  })
}

/** Adds the declared headers that the mock has not set, for example the rate limit. */
async function withDeclaredHeaders(ctx: Context, next: Next, examples: Examples): Promise<void> {
  await next()
  const id: OperationId | undefined = ctx.state.operationId
  if (id === undefined) return
  for (const [name, value] of Object.entries(examples.find(id, ctx.status).headers))
    if (!ctx.res.hasHeader(name)) ctx.set(name, value)
}

async function respond(
  service: ServiceParts,
  ctx: Context,
  id: OperationId,
  examples: Examples,
): Promise<void> {
  const operation: OperationRow = operations[id]
  const { input: sent } = (await service.readInput(ctx, id)).input
  const { status: preferred, name } = readPreference(ctx, id, operation, examples)
  const current = currentRecord(ctx, operation, examples)
  if (sent) {
    const before = current?.value as object | undefined
    service.assertRecordSize({ record: { ...before, ...sent }, before, sent })
  }
  const status =
    preferred ?? conditionalStatus(service, ctx, operation, current) ?? operation.success
  const body = exampleBody(ctx, id, examples, { status, name })
  if (body !== null) {
    // Set before the body, or Koa adds a charset.
    ctx.set('Content-Type', body.mediaType)
    ctx.body = body.text
  } else {
    ctx.body = null
  }
  // Set after the body: Koa turns an empty body into 204.
  ctx.status = status
  if (status === 304 && current !== null) ctx.set('ETag', service.etagOf(current.text))
  if (status !== operation.success || body === null) return
  if (operation.etag) ctx.set('ETag', service.etagOf(body.text))
  if (operation.location) ctx.set('Location', `${ctx.path}/${(body.value as { id: string }).id}`)
}

interface Preference {
  status?: number
  name?: string
}

/** Reads `Prefer: code=404, example=name` (RFC 7240, with the names of Prism) and ignores other preferences.
 *  Throws `InvalidInput` for a response or example that the contract does not have. */
function readPreference(
  ctx: Context,
  id: OperationId,
  operation: OperationRow,
  examples: Examples,
): Preference {
  const preferences = new Map(
    [
      ...ctx
        .get('Prefer')
        .matchAll(/(?:^|[,;])\s*([^\s=,;]+)\s*(?:=\s*(?:"([^"]*)"|([^\s,;]*)))?/g),
    ].map(([, name = '', quoted, plain]): [string, string] => [
      name.toLowerCase(),
      quoted ?? plain ?? '',
    ]),
  )
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

function refusePreference(
  id: OperationId,
  what: string,
  known: readonly (string | number)[],
): never {
  const choice =
    known.length === 0 ? 'that response has no named examples' : `use ${known.join(', ')}`
  throw new InvalidInput({ Prefer: [`${id} does not have ${what}: ${choice}.`] })
}

/** The response of GET for the same path. Null if it has no ETag. */
function currentRecord(ctx: Context, { path }: OperationRow, examples: Examples): Body | null {
  const id = operationIds.find(
    (other) => operations[other].path === path && operations[other].method === 'get',
  )
  return id !== undefined && operations[id].etag
    ? exampleBody(ctx, id, examples, { status: operations[id].success })
    : null
}

/** 304 or 412 if the request is conditional and its condition fails. */
function conditionalStatus(
  { etagOf, ifMatchHolds, ifNoneMatchHolds }: ServiceParts,
  ctx: Context,
  { access, ifMatch }: OperationRow,
  current: Body | null,
): number | undefined {
  if (current === null) return undefined
  const etag = etagOf(current.text)
  const known = ctx.get('If-None-Match')
  if (access === 'read' && known !== '' && ifNoneMatchHolds(known, etag)) return 304
  return ifMatch && !ifMatchHolds(ctx.headers['if-match'], etag) ? 412 : undefined
}

interface Body {
  value: unknown
  text: string
  mediaType: string
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
