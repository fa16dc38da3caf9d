/** Tests a service or a mock against its OpenAPI document: sends a valid request and invalid ones
 *  to each operation. */
import type { Recording } from '../contract/report/har.ts'
import type { Contract } from '../model/contract.ts'
import { readBasePath } from '../model/document.ts'
import { parseJson } from '../model/json.ts'
import { isJson, METHODS, type Operation, type Parameter } from '../model/operations.ts'
import { shapeOf } from '../model/paths.ts'
import { dereference } from '../model/references.ts'
import { mapValues } from '../model/schema.ts'
import { readSecuritySchemes } from '../model/security-schemes.ts'
import { chooseMedia } from './bodies.ts'
import { listParameters } from './parameters.ts'
import { type Draft, draftRequest, type PlannedRequest, renderRequest } from './requests.ts'
import { newSampler } from './samples.ts'
import { newValidation } from './schemas.ts'
import { findResponse, type Tools } from './service.ts'

interface CheckOptions {
  contract: Contract
  /** Without a trailing slash and without the base path. */
  url: string
  /** The credential for every security scheme. */
  key: string
}

export interface Outcome {
  operation: string
  requests: number
  /** One sentence each. */
  failures: string[]
  /** The requests that failed, with their responses. */
  recordings: Recording[]
}

const TIMEOUT_MS = 30_000

/** Tests one operation after another. A missing response is a failure in the outcome, and throws no
 *  error. */
export async function checkService(options: CheckOptions): Promise<Outcome[]> {
  const { contract } = options
  const validation = newValidation(contract.openapi)
  const tools = { validation, sampler: newSampler(contract.openapi, validation) }
  const outcomes: Outcome[] = []
  for (const operation of contract.operations)
    outcomes.push(await checkOperation(options, tools, operation))
  return outcomes
}

async function checkOperation(
  options: CheckOptions,
  tools: Tools,
  operation: Operation,
): Promise<Outcome> {
  const outcome: Outcome = { operation: operation.id, requests: 0, failures: [], recordings: [] }
  let planned: Planned[]
  try {
    planned = planRequests(options, tools, operation)
  } catch (error) {
    outcome.failures.push(`no valid request can be made: ${(error as Error).message}`)
    return outcome
  }
  for (const each of planned) {
    const { what, request } = each
    outcome.requests += 1
    const startedAt = Date.now()
    const response = await send(options, request).catch((error: Error) => error)
    const durationMs = Date.now() - startedAt
    const problem = findProblem(tools, operation, each, response)
    if (problem === undefined) continue
    outcome.failures.push(`${what}: ${request.method} ${request.path}: ${problem}`)
    outcome.recordings.push({
      url: baseUrlOf(options),
      exchange: { startedAt, durationMs, ...toExchange(request, response) },
      comment: `${operation.id} ${what}: ${problem}`,
    })
  }
  return outcome
}

/** `key` is null because `headers` has the credentials. */
function toExchange(request: PlannedRequest, response: Received | Error) {
  return {
    request: { ...request, key: null },
    response: response instanceof Error ? null : { ...response, json: undefined },
  }
}

function findProblem(
  tools: Tools,
  operation: Operation,
  { expect, isUndeclared }: Planned,
  response: Received | Error,
): string | undefined {
  if (response instanceof Error) {
    const { message } = (response.cause as Error | undefined) ?? response
    return `no response: ${message}`
  }
  const problem = expect(response.status)
  if (problem !== undefined || isUndeclared) return problem
  return findResponseFault(tools, operation, response)
}

interface Planned {
  what: string
  /** With `KEY` in place of the credential. */
  request: PlannedRequest
  /** The response belongs to no operation, so the document says nothing about it. */
  isUndeclared?: boolean
  /** Says why the status is wrong. Returns undefined if it is right. */
  expect(status: number): string | undefined
}

const NOT_IMPLEMENTED = 501
/** A valid request must not get these. It may get others from 400 to 499, such as 404 and 409: its
 *  values name no real records. */
const REFUSING_STATUSES = [400, 401, 403, 405, 415, 422]

function expectAccepted(operation: Operation): Planned['expect'] {
  return (status) => {
    if (status === NOT_IMPLEMENTED) return `responds with 501: write handlers/${operation.id}.ts`
    if (REFUSING_STATUSES.includes(status)) return `valid data got ${status}`
    if (status >= 500 && !operation.responses.some((response) => response.status === status))
      return `got ${status}`
    return undefined
  }
}

const expectRefused: Planned['expect'] = (status) =>
  status >= 400 && status < 500 ? undefined : `got ${status} instead of a status from 400 to 499`

function planRequests({ contract }: CheckOptions, tools: Tools, operation: Operation): Planned[] {
  const { openapi } = contract
  const draft = draftRequest(tools, readSecuritySchemes(openapi), operation, KEY)
  const render = (change: Partial<Draft> = {}) => renderRequest({ ...draft, ...change })
  const refused = (what: string, request: PlannedRequest): Planned => ({
    what,
    request,
    expect: expectRefused,
  })
  const planned: Planned[] = [
    { what: 'a valid request', request: render(), expect: expectAccepted(operation) },
  ]
  if (!operation.isPublic && operation.security.every((one) => Object.keys(one).length > 0))
    planned.push(refused('no credentials', render({ credentials: { headers: {}, query: {} } })))
  for (const [parameter, parameters] of withoutEachParameter(draft))
    planned.push(refused(`no ${parameter.name}`, render({ parameters })))
  for (const [parameter, parameters] of withInvalidParameters(tools, contract, draft))
    planned.push(refused(`an invalid ${parameter.name}`, render({ parameters })))
  if (draft.mediaType !== undefined && isJson(draft.mediaType))
    for (const [what, body] of listInvalidBodies(tools, contract, draft))
      planned.push(refused(what, render({ body })))
  const unknown = 'application/x-unknown'
  if (draft.mediaType !== undefined && !chooseMedia(operation.bodies, unknown))
    planned.push(refused('another media type', render({ mediaType: unknown })))
  return [...planned, ...planUnknownMethod(contract, operation, render())]
}

function planUnknownMethod(
  { operations }: Contract,
  { path }: Operation,
  request: PlannedRequest,
): Planned[] {
  const usedMethods = operations
    .filter((other) => shapeOf(other.path) === shapeOf(path))
    .map(({ method }) => method)
  const method = METHODS.find(
    (name) => !usedMethods.includes(name) && !/^(get|head|options|trace)$/.test(name),
  )
  if (method === undefined) return []
  const { body: _body, ...rest } = request
  return [
    {
      what: 'another method',
      request: { ...rest, method: method.toUpperCase() },
      isUndeclared: true,
      expect: expectRefused,
    },
  ]
}

/** Each parameter outside the path, with the parameters of the draft that remain without it. A
 *  draft has required parameters only. */
function* withoutEachParameter({ parameters }: Draft): Iterable<[Parameter, Draft['parameters']]> {
  for (const place of ['query', 'header', 'cookie'] as const)
    for (const [parameter] of parameters[place]) {
      // The service adds a default, so the parameter is never missing.
      if (parameter.schema.value.default !== undefined) continue
      const others = [...parameters[place]].filter(([other]) => other !== parameter)
      yield [parameter, { ...parameters, [place]: new Map(others) }]
    }
}

const INVALID_TEXT = 'not/valid'

/** Each path or query parameter whose schema refuses `INVALID_TEXT`, with the draft's parameters
 *  after it is set to this text. Skips lists and parameters with a media type. */
function* withInvalidParameters(
  { validation }: Tools,
  { openapi }: Contract,
  { operation, parameters }: Draft,
): Iterable<[Parameter, Draft['parameters']]> {
  for (const place of ['path', 'query'] as const)
    for (const parameter of listParameters(operation, place)) {
      const schema = { type: 'object', properties: { value: parameter.schema.value } }
      const placed = { source: openapi, path: [], value: schema }
      const { items } = dereference({ [openapi.file]: openapi }, parameter.schema).value
      if (items || parameter.mediaType !== undefined) continue
      if (validation.convertInPlace(placed, { value: INVALID_TEXT }).length > 0)
        yield [
          parameter,
          { ...parameters, [place]: new Map([...parameters[place], [parameter, INVALID_TEXT]]) },
        ]
    }
}

/** Values of all types: most schemas refuse some of them. */
const WRONG_VALUES = [null, [], 'text', 1, true, {}]

/** Pairs of a description and a body that the schema refuses. */
function* listInvalidBodies(
  { validation }: Tools,
  { openapi }: Contract,
  { operation, body }: Draft,
): Iterable<[string, unknown]> {
  const schema = operation.body?.schema
  if (!schema) return
  const isInvalid = (value: unknown) =>
    validation.check(schema, 'request', structuredClone(value)).length > 0
  const wrong = WRONG_VALUES.find(isInvalid)
  if (wrong !== undefined) yield [`the body ${JSON.stringify(wrong)}`, wrong]
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return
  const { required = [] } = dereference({ [openapi.file]: openapi }, schema).value
  for (const name of Object.keys(body)) {
    const others = Object.fromEntries(Object.entries(body).filter(([other]) => other !== name))
    const isRequired = Array.isArray(required) && required.includes(name)
    if (isRequired && isInvalid(others)) yield [`a body without ${name}`, others]
    const value = WRONG_VALUES.find((candidate) => isInvalid({ ...body, [name]: candidate }))
    if (value !== undefined)
      yield [`a body with ${name}: ${JSON.stringify(value)}`, { ...body, [name]: value }]
  }
}

interface Received {
  status: number
  headers: Headers
  text: string
}

/** Stands for the credential in requests that are recorded. */
const KEY = '$KEY'

function baseUrlOf({ contract, url }: CheckOptions): string {
  return url + readBasePath(contract.openapi)
}

async function send(options: CheckOptions, request: PlannedRequest): Promise<Received> {
  const { method, path, headers, body } = request
  const { key } = options
  const withKey = path.replaceAll(encodeURIComponent(KEY), () => encodeURIComponent(key))
  const response = await fetch(baseUrlOf(options) + withKey, {
    method,
    headers: mapValues(headers, (value) => value.replaceAll(KEY, () => key)),
    body: method === 'GET' || method === 'HEAD' ? undefined : body,
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Says how the response breaks the document. An error with a status that the document does not
 *  declare may have any body. */
function findResponseFault(
  { validation }: Tools,
  operation: Operation,
  { status, headers, text }: Received,
): string | undefined {
  const declared = findResponse(operation, status)
  if (!declared) return status < 400 ? `the document does not declare ${status}` : undefined
  for (const { name, required, schema } of Object.values(declared.headers)) {
    const value = headers.get(name)
    if (value === null && required) return `${status} has no header ${name}`
    const object = { ...schema, value: { type: 'object', properties: { value: schema.value } } }
    if (value !== null && validation.convertInPlace(object, { value }).length > 0)
      return `the header ${name} of ${status} breaks its schema`
  }
  const media = Object.values(declared.content)
  const type = headers.get('content-type') ?? ''
  if (media.length === 0 || text === '') return undefined
  const found = chooseMedia(media, type)
  if (!found) return `the document does not declare the Content-Type ${type} for ${status}`
  if (!isJson(type)) return undefined
  const body = parseJson(text)
  if (body === undefined) return `the body of ${status} is not JSON`
  const [problem] = validation.check(found.schema, 'response', body)
  return problem && `the body of ${status} breaks its schema: ${problem.field} ${problem.message}`
}
