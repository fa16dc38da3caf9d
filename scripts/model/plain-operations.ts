/** Operations of an OpenAPI document of another team. Such a document may lack parts that our
 *  contract must have, and may use every feature that scripts/service/unsupported.ts accepts. */
import {
  isJson,
  type Operation,
  type OperationResponse,
  type Parameter,
  type RangeResponse,
  readContent,
  readExample,
  readParameters,
  readResponseParts,
  readSecurity,
} from './operations.ts'
import { listOperationPaths } from './paths.ts'
import { dereference } from './references.ts'
import type { Schema } from './schema.ts'
import {
  isObject,
  type Located,
  type Path,
  type Place,
  type Source,
  type Sources,
  valueAt,
} from './source.ts'

/** `openapi` refers to no other file: bundle.ts has joined the files. */
export function readPlainOperations(sources: Sources, openapi: Source): Operation[] {
  return listOperationPaths(openapi).map((path) =>
    readOperation(sources, { source: openapi, path }),
  )
}

function readOperation(sources: Sources, place: Place): Operation {
  const { source, path } = place
  const [, template = '', method = ''] = path.map(String)
  const node = valueAt(source.root, path) as Record<string, unknown>
  const keys = Object.keys((node.responses ?? {}) as object).filter((key) => !key.startsWith('x-'))
  const responses = keys.filter(isStatus).map((key) => readResponse(sources, place, key))
  const ranges = keys
    .filter((key) => !isStatus(key))
    .map((range) => ({ ...readResponse(sources, place, range), range }))
  const { bodies, isBodyRequired } = readBodies(sources, place, node.requestBody)
  const security = readSecurity(source, node.security)
  return {
    id: toOperationId(node.operationId, method, template),
    place,
    method,
    path: template,
    tag: String(valueAt(node, ['tags', 0]) ?? ''),
    summary: String(node.summary ?? node.operationId ?? `${method.toUpperCase()} ${template}`),
    description: String(node.description ?? ''),
    isPublic: security.every((requirement) => Object.keys(requirement).length === 0),
    permission: null,
    rateLimit: null,
    security,
    parameters: readParameters(sources, place, readParameter),
    body: bodies.find(({ mediaType }) => isJson(mediaType)) ?? bodies[0] ?? null,
    bodies,
    isBodyRequired,
    responses,
    ranges,
    success: chooseSuccess(responses, ranges),
    emits: [],
    deprecation: node.deprecated === true ? { since: null, sunset: null } : null,
  }
}

/** No module can declare a function with one of these names. */
const RESERVED = new Set(
  (
    'arguments await break case catch class const continue debugger default delete do else enum eval ' +
    'export extends false finally for function if implements import in instanceof interface let new ' +
    'null package private protected public return static super switch this throw true try typeof var ' +
    'void while with yield'
  ).split(' '),
)

/** Words of TypeScript's syntax that can also be names of variables. */
const CONTEXTUAL = ['as', 'async', 'declare', 'from', 'get', 'of', 'satisfies', 'set', 'type']

/** Whether the word can be a part of the syntax of TypeScript. */
export function isKeyword(word: string): boolean {
  return RESERVED.has(word) || CONTEXTUAL.includes(word)
}

/** The ID as the name of a function and its file: `issuesListForRepo` for `issues/list-for-repo`,
 *  `deleteOperation` for `delete`, which is reserved, and `op2faOperation` for `2fa`. Without an
 *  ID, the method and the path make the name. */
export function toOperationId(operationId: unknown, method: string, path: string): string {
  const text = typeof operationId === 'string' && operationId !== '' ? operationId : method + path
  const [first = '', ...others] = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  const name = [
    first.charAt(0).toLowerCase() + first.slice(1),
    ...others.map((word) => word.charAt(0).toUpperCase() + word.slice(1)),
  ].join('')
  if (/^\d/.test(name)) return `op${name}Operation`
  return name === '' || RESERVED.has(name) ? `${name}Operation` : name
}

const OK = 200
const NOT_MODIFIED = 304

/** The first of these that is declared: the lowest status from 200 to 299, the range `2XX`, the
 *  lowest redirection except 304, `default`. A redirection precedes `default`, because `default`
 *  beside it describes errors. If none of them is declared, the success is an empty 200. */
function chooseSuccess(responses: OperationResponse[], ranges: RangeResponse[]): OperationResponse {
  const sorted = responses
    .filter(({ status }) => status !== NOT_MODIFIED)
    .toSorted((a, b) => a.status - b.status)
  const findStatus = (hundred: number) =>
    sorted.find(({ status }) => Math.floor(status / 100) === hundred)
  const findRange = (wanted: string): OperationResponse | undefined => {
    const found = ranges.find(({ range }) => range.toUpperCase() === wanted)
    return found && { ...found, status: OK }
  }
  const declared = findStatus(2) ?? findRange('2XX') ?? findStatus(3) ?? findRange('DEFAULT')
  if (declared) return declared
  const other = (responses[0] ?? ranges[0]) as OperationResponse
  return { ...other, status: OK, description: '', headers: {}, content: {} }
}

function readParameter(sources: Sources, placed: Located): Parameter {
  const { source, path, value } = placed
  const {
    name,
    in: where,
    required,
    description,
    style,
    explode,
    content,
  } = value as Record<string, unknown>
  const [mediaType] = Object.keys((content ?? {}) as object)
  const steps = mediaType === undefined ? [] : ['content', mediaType]
  // The object with the schema: the parameter, or its media type.
  const owner = { source, path: [...path, ...steps], value: valueAt(value, steps) }
  return {
    name: String(name),
    in: String(where),
    place: placed,
    required: required === true || where === 'path',
    description: String(description ?? ''),
    style: style as string | undefined,
    explode: explode as boolean | undefined,
    mediaType,
    schema: locateSchemaOrAny(owner),
    example: readExample(sources, owner),
  }
}

function readBodies(sources: Sources, { source, path }: Place, value: unknown) {
  if (!isObject(value)) return { bodies: [], isBodyRequired: false }
  const body = dereference(sources, { source, path: [...path, 'requestBody'], value })
  return {
    bodies: readContent(sources, body, locateSchemaOrAny),
    isBodyRequired: body.value.required === true,
  }
}

/** Whether the key of a response is one status. Other keys are `default` and for example `4XX`. */
function isStatus(key: string): boolean {
  return /^\d{3}$/.test(key)
}

/** The response at the key. Its status is 0 if the key is not one status. */
function readResponse(sources: Sources, operation: Place, key: string): OperationResponse {
  const { source } = operation
  const path = [...operation.path, 'responses', key]
  const value = valueAt(source.root, path)
  const response = dereference(sources, { source, path, value }) as Located<Record<string, unknown>>
  const parts = readResponseParts(sources, response, locateSchemaOrAny)
  return { status: isStatus(key) ? Number(key) : 0, place: response, ...parts }
}

/** The schema at the key `schema` below the place, or `{}`, which every value meets. */
function locateSchemaOrAny({ source, path }: Place): Located<Schema> {
  const at: Path = [...path, 'schema']
  const value = valueAt(source.root, at)
  return { source, path: at, value: isObject(value) ? (value as Schema) : {} }
}
