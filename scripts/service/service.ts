/** Serves the operations of an OpenAPI document: matches the request, looks for its credentials,
 *  validates its parameters and body, calls `handle`, and checks the response. */
import type { IncomingMessage } from 'node:http'
import Koa, { type Context, type Middleware } from 'koa'
import { InvalidInput, StatusError } from '../../errors.ts'
import type { Contract } from '../model/contract.ts'
import { readBasePath } from '../model/document.ts'
import {
  isJson,
  type MediaType,
  type Operation,
  type OperationResponse,
} from '../model/operations.ts'
import { readSecuritySchemes } from '../model/security-schemes.ts'
import { readBody } from './bodies.ts'
import { type Credentials, findCredentials, formatChallenges } from './credentials.ts'
import { newParameterReader, type ParameterReader, type Values } from './parameters.ts'
import { nameParameters, newRouter } from './routes.ts'
import { newSampler, type Sampler } from './samples.ts'
import { newValidation, type Problem, type Validation } from './schemas.ts'

export interface Call {
  operation: Operation
  path: Values
  query: Values
  /** By lower-case name. */
  headers: Values
  cookies: Values
  body: unknown
  credentials: Credentials
  request: IncomingMessage
}

export interface Result {
  status: number
  headers?: Readonly<Record<string, string>>
  /** For a JSON media type: any value. For other media types: text, a Buffer or a stream, which is
   *  sent as it is. */
  body?: unknown
  /** Default: the first media type that the document declares for the response. */
  mediaType?: string
}

export interface ServiceOptions {
  contract: Contract
  handle(call: Call, tools: Tools): Promise<Result>
  onResponse?(ctx: Context): void
  onError?(error: unknown, ctx: Context): void
  /** Adds middleware for other paths, for example for the documentation. */
  extend?(app: Koa): void
}

export interface Tools {
  validation: Validation
  sampler: Sampler
}

export function createService(options: ServiceOptions): Koa {
  const serve = newMiddleware(options)
  const app = new Koa()
  app.on('error', (error, ctx) => options.onError?.(error, ctx))
  app.use(async (ctx, next) => {
    ctx.set('X-Content-Type-Options', 'nosniff')
    await next()
    options.onResponse?.(ctx)
  })
  options.extend?.(app)
  app.use(serve)
  return app
}

function newMiddleware(options: ServiceOptions): Middleware {
  const { contract, handle, onError } = options
  const { openapi } = contract
  const validation = newValidation(openapi)
  const tools: Tools = { validation, sampler: newSampler(openapi, validation) }
  const findRoute = newRouter(contract.operations, readBasePath(openapi))
  const schemes = readSecuritySchemes(openapi)
  const readers = new Map<Operation, ParameterReader>()
  const readerOf = (operation: Operation): ParameterReader => {
    const reader = readers.get(operation) ?? newParameterReader(openapi, validation, operation)
    readers.set(operation, reader)
    return reader
  }

  async function readCall(
    ctx: Context,
    operation: Operation,
    path: Record<string, string>,
  ): Promise<Call> {
    const raw = { path, query: new URLSearchParams(ctx.querystring), headers: ctx.headers }
    const credentials = findCredentials(schemes, operation, raw)
    if (!credentials) throw new StatusError(401, 'The credentials are missing or malformed.')
    const { values, problems } = readerOf(operation).read(raw)
    const { body, problems: bodyProblems } = await readBody(openapi, validation, operation, ctx.req)
    const all = [...problems, ...bodyProblems]
    if (all.length > 0) throw new InvalidInput(byField(all))
    const { path: pathValues, query, header, cookie } = values
    const parameters = { path: pathValues, query, headers: header, cookies: cookie }
    return { operation, ...parameters, body, credentials, request: ctx.req }
  }

  return async (ctx) => {
    let operation: Operation | undefined
    try {
      const match = matchRoute(findRoute, ctx)
      operation =
        match.route.operations.get(ctx.method.toLowerCase()) ??
        (ctx.method === 'HEAD' ? match.route.operations.get('get') : undefined)
      ctx.state.operation = operation
      if (!operation) return respondToOtherMethod(ctx, match.route.allow)
      const result = await handle(
        await readCall(ctx, operation, nameParameters(operation, match)),
        tools,
      )
      send(ctx, validation, operation, result)
    } catch (error) {
      respondToError(ctx, tools, operation, error)
      const challenges = operation && formatChallenges(schemes, operation)
      if (ctx.status === 401 && challenges) ctx.set('WWW-Authenticate', challenges)
      if (ctx.status >= 500 && ctx.status !== NOT_IMPLEMENTED) onError?.(error, ctx)
    }
  }
}

function matchRoute(findRoute: ReturnType<typeof newRouter>, ctx: Context) {
  try {
    const match = findRoute(ctx.path)
    if (match) return match
  } catch {
    throw new StatusError(400, 'The URL has a broken percent-encoding.')
  }
  throw new StatusError(404, 'There is nothing at this URL.')
}

/** Throws `StatusError` 405 unless the method is OPTIONS. */
function respondToOtherMethod(ctx: Context, allow: string): void {
  ctx.set('Allow', allow)
  if (ctx.method === 'OPTIONS') {
    ctx.status = 204
    return
  }
  throw new StatusError(405, `${ctx.method} is not possible here. Use ${allow}.`)
}

function byField(problems: Problem[]): Record<string, string[]> {
  const fields = new Map<string, string[]>()
  for (const { field, message } of problems)
    fields.set(field, [...(fields.get(field) ?? []), `${field} ${message}.`])
  return Object.fromEntries(fields)
}

export function findResponse(operation: Operation, status: number): OperationResponse | undefined {
  const { responses, ranges, success } = operation
  const ofRange = (wanted: string) => ranges.find(({ range }) => range.toUpperCase() === wanted)
  return (
    responses.find((response) => response.status === status) ??
    ofRange(`${Math.floor(status / 100)}XX`) ??
    ofRange('DEFAULT') ??
    (success.status === status ? success : undefined)
  )
}

const NOT_IMPLEMENTED = 501

/** Throws an Error if the result is not what the document declares, and `StatusError` 501 if the
 *  operation is not implemented. */
function send(ctx: Context, validation: Validation, operation: Operation, result: Result): void {
  const { status, headers = {}, body } = result
  if (status === NOT_IMPLEMENTED && body === undefined)
    throw new StatusError(NOT_IMPLEMENTED, `${operation.id} is not implemented yet.`)
  const declared = findResponse(operation, status)
  if (!declared)
    throw new Error(`${operation.id} returned ${status}, which the document does not declare`)
  const media = Object.values(declared.content)
  const type = result.mediaType ?? media[0]?.mediaType
  assertBody(
    validation,
    operation,
    result,
    media.find(({ mediaType }) => mediaType === type),
  )
  ctx.set(headers)
  if (body === undefined) ctx.body = null
  else {
    // Set before the body, or Koa adds a charset.
    if (type !== undefined) ctx.set('Content-Type', type)
    ctx.body = type !== undefined && isJson(type) ? JSON.stringify(body) : (body as string)
  }
  ctx.status = status
}

function assertBody(
  validation: Validation,
  { id }: Operation,
  { status, body }: Result,
  media: MediaType | undefined,
): void {
  if (!media || !isJson(media.mediaType)) return
  const [problem] = validation.check(media.schema, 'response', body)
  if (problem)
    throw new Error(
      `${id} returned ${status} with a body that breaks the document: ${problem.field} ${problem.message}`,
    )
}

/** For a range of media types, one type of the range, for example `text/plain` for `text/*`. Any
 *  other media type stays unchanged. */
export function concreteType(mediaType: string): string {
  return mediaType.startsWith('*') ? 'application/json' : mediaType.replace('*', 'plain')
}

/** The statuses for invalid input, the preferred one first. */
const INVALID_STATUSES = [422, 400]
const MESSAGE_FIELD =
  /^(message|detail|error_description|error_message|errormessage|description|title|error)$/i

function respondToError(
  ctx: Context,
  tools: Tools,
  operation: Operation | undefined,
  error: unknown,
): void {
  const { status, message, errors } = describeError(operation, error)
  if (error instanceof StatusError) ctx.set(error.headers)
  const body = declaredErrorBody(tools, operation, status, message) ?? {
    mediaType: 'application/json',
    value: { message, ...(errors && { errors }) },
  }
  ctx.set('Content-Type', body.mediaType)
  ctx.body = isJson(body.mediaType) ? JSON.stringify(body.value) : body.value
  ctx.status = status
}

function describeError(operation: Operation | undefined, error: unknown) {
  if (error instanceof InvalidInput) {
    const declared = operation?.responses.map(({ status }) => status) ?? []
    const status = INVALID_STATUSES.find((one) => declared.includes(one)) ?? 400
    const sentences = Object.values(error.errors).flat()
    return { status, message: sentences.join(' '), errors: error.errors }
  }
  if (error instanceof StatusError) return { status: error.status, message: error.message }
  return { status: 500, message: 'An unexpected error occurred. The log of the service has it.' }
}

/** A body as the document declares it for the status. Contains the message if a field is for
 *  messages. Undefined for 501, without a declared body, or if the sampler finds no valid body. */
function declaredErrorBody(
  { sampler, validation }: Tools,
  operation: Operation | undefined,
  status: number,
  message: string,
): { mediaType: string; value: unknown } | undefined {
  const declared = operation && findResponse(operation, status)
  const all = Object.values(declared?.content ?? {})
  const media = all.find(({ mediaType }) => isJson(mediaType))
  if (all.length === 0 || status === NOT_IMPLEMENTED) return undefined
  if (!media) return { mediaType: concreteType(all[0]?.mediaType ?? ''), value: message }
  const value = sampler.sample(media.schema, 'response', media.example)
  if (value === undefined) return undefined
  const withMessage = insertMessage(value, message)
  const isValid = validation.check(media.schema, 'response', withMessage).length === 0
  return { mediaType: media.mediaType, value: isValid ? withMessage : value }
}

/** Replaces the first text whose field matches `MESSAGE_FIELD`. Without such a field, does the same
 *  in each object that is a field of the value. */
function insertMessage(value: unknown, message: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const fields = Object.entries(value)
  const field = fields.find(([name, text]) => typeof text === 'string' && MESSAGE_FIELD.test(name))
  if (field) return { ...value, [field[0]]: message }
  return Object.fromEntries(fields.map(([name, part]) => [name, insertMessage(part, message)]))
}
