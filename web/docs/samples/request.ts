/** The request of a sample: the contract's examples, with variables for the IDs of records. */
import { parameterNames, recordTypeOf } from '../../../scripts/model/paths.ts'
import { valueAt } from '../../../scripts/model/source.ts'
import { type Api, type ApiOperation, findGetOperation } from '../api.ts'

const JSON_TYPE = 'application/json'

/** An environment variable with the ID of a record. */
export class IdVariable {
  readonly name: string
  /** The operation that creates the record, or that lists such records. */
  readonly source: ApiOperation

  constructor(name: string, source: ApiOperation) {
    this.name = name
    this.source = source
  }

  get isOfCreatedRecord(): boolean {
    return this.source.method === 'POST'
  }
}

export interface SampleRequest {
  method: string
  baseUrl: string
  /** The path's template, for example `/public/v1/tasks/{task}`. */
  template: string
  pathValues: [name: string, value: string | IdVariable][]
  query: [name: string, value: unknown][]
  /** Each run of the sample sends a new `Idempotency-Key`, so that samples in several languages do
   *  not share one. */
  isKeyed: boolean
  /** With an `IdVariable` for each reference to a record. The text of a file. Undefined: the request has
   *  no body. */
  body: unknown
  /** The media type of the body. */
  mediaType: string
  responseFormat: 'json' | 'text' | 'none'
  /** The variables of the path and the body. */
  variables: IdVariable[]
  /** The name of the variable for the ID of the record that the request creates. */
  createdVariable: string | undefined
}

/** The query has only the parameters with an example in the contract. */
export function exampleRequest(api: Api, operation: ApiOperation, baseUrl: string): SampleRequest {
  const { method, path, parameters, files } = operation
  const [file] = files
  const pathValues = listPathValues(api, operation)
  const body = exampleBody(api, operation)
  return {
    method,
    baseUrl,
    template: path,
    pathValues,
    query: parameters
      .filter((parameter) => parameter.in === 'query' && parameter.example !== undefined)
      .map(({ name, example }) => [name, example]),
    isKeyed: parameters.some(({ name }) => name === 'Idempotency-Key'),
    body: file?.example ?? body.value,
    mediaType: file?.mediaType ?? JSON_TYPE,
    responseFormat: formatOf(operation),
    variables: [
      ...pathValues.map(([, value]) => value).filter((value) => value instanceof IdVariable),
      ...body.variables,
    ],
    createdVariable: findCreatedVariable(api, operation),
  }
}

/** The path with its values. `write` returns the code that stands for a variable. */
export function fillPath(
  { template, pathValues }: SampleRequest,
  write: (variable: IdVariable) => string,
): string {
  const values = new Map(pathValues)
  return template.replace(/\{(.*?)\}/g, (_, name) => {
    const value = values.get(name) ?? ''
    return typeof value === 'string' ? value : write(value)
  })
}

/** Whether the body is JSON. Otherwise it is the text of a file. */
export function hasJson({ body, mediaType }: SampleRequest): boolean {
  return body !== undefined && mediaType === JSON_TYPE
}

/** The text of the body: of JSON with `$NAME` in place of each variable. */
export function bodyText(request: SampleRequest): string {
  const { body } = request
  if (!hasJson(request)) return String(body)
  const write = (_: string, value: unknown) =>
    value instanceof IdVariable ? `$${value.name}` : value
  return JSON.stringify(body, write, 2)
}

/** For each variable, a sentence that tells the reader how to set it. */
export function listPreparations({ variables }: SampleRequest): string[] {
  return variables.map(describeVariable)
}

export function describeVariable({ name, source, isOfCreatedRecord }: IdVariable): string {
  return `Set ${name} to ${isOfCreatedRecord ? 'the' : 'an'} ID that "${source.summary}" prints.`
}

function formatOf({ success }: ApiOperation): SampleRequest['responseFormat'] {
  const mediaTypes = Object.keys(success.content)
  if (mediaTypes.length === 0) return 'none'
  return mediaTypes.every((type) => type === 'application/json') ? 'json' : 'text'
}

function listPathValues(api: Api, { path, parameters }: ApiOperation): SampleRequest['pathValues'] {
  return parameterNames(path).map((name) => {
    const example = parameters.find((parameter) => parameter.name === name)?.example
    return [name, findVariable(api, name) ?? String(example ?? `{${name}}`)]
  })
}

interface ExampleBody {
  value: unknown
  variables: IdVariable[]
}

function exampleBody(api: Api, operation: ApiOperation): ExampleBody {
  const { source, path } = operation.place
  const words = valueAt(source.root, [...path, 'x-batch']) as
    | { create: string; update: string }
    | undefined
  const find = (id: string | undefined) => api.operations.find((one) => one.id === id)
  const [create, update] = [find(words?.create), find(words?.update)]
  if (create && update) return batchBody(api, operation, { create, update })
  const references = listReferences(api, operation, operation.body?.example)
  const value = withReferences(repeatableExample(operation), references)
  return { value, variables: references.map(([, variable]) => variable) }
}

/** Each item with variables for its ID and its references. */
function batchBody(
  api: Api,
  { body }: ApiOperation,
  { create, update }: { create: ApiOperation; update: ApiOperation },
): ExampleBody {
  const variables: IdVariable[] = []
  const { items = [] } = (body?.example ?? {}) as { items?: { id?: unknown; data: object }[] }
  const written = items.map(({ id, data, ...item }) => {
    const [parameter = ''] = parameterNames(update.path)
    const record = id === undefined ? undefined : (findVariable(api, parameter) ?? id)
    const references = listReferences(api, create, data)
    const own = [record, ...references.map(([, variable]) => variable)]
    variables.push(...own.filter((value) => value instanceof IdVariable))
    return { ...item, ...(record ? { id: record } : {}), data: withReferences(data, references) }
  })
  return { value: { items: written }, variables }
}

/** The fields of the example that refer to records, with the variables for these records. */
function listReferences(
  api: Api,
  { body }: ApiOperation,
  example: unknown,
): [field: string, variable: IdVariable][] {
  const { properties = {} } = body ? api.follow(body.schema.value) : {}
  return Object.entries(properties).flatMap(([field, schema]) => {
    const recordType = api.follow(schema)['x-refers-to']
    const variable = typeof recordType === 'string' ? findVariable(api, recordType) : undefined
    const hasId = typeof (example as Record<string, unknown> | undefined)?.[field] === 'string'
    return variable && hasId ? [[field, variable] as [string, IdVariable]] : []
  })
}

/** The example of the body without fields that must be unique, so that the sample runs more than
 *  once. */
function repeatableExample({ method, body, place }: ApiOperation): unknown {
  if (method !== 'POST' || !body) return body?.example
  const rules = (valueAt(place.source.root, [...place.path, 'x-refusals']) ?? {}) as Record<
    string,
    { unique?: boolean }
  >
  return Object.fromEntries(
    Object.entries(body.example as object).filter(([field]) => !rules[field]?.unique),
  )
}

function withReferences(body: unknown, references: [string, IdVariable][]): unknown {
  return references.length === 0 ? body : { ...(body as object), ...Object.fromEntries(references) }
}

/** The variable for the ID of a record that another operation creates or lists. Undefined if there
 *  is no such operation. */
function findVariable(api: Api, idParameter: string): IdVariable | undefined {
  const { operations } = api
  const get = findGetOperation(operations, recordTypeOf(idParameter))
  const collection = get?.path.replace(/\/[^/]*$/, '')
  const find = (wanted: string) =>
    operations.find(({ method, path }) => method === wanted && path === collection)
  const source =
    find('POST') ?? find('GET') ?? operations.find((operation) => creates(api, operation, get))
  return source && new IdVariable(variableName(idParameter), source)
}

/** Whether the operation creates the record that `get` returns. Its path may be below a record of
 *  another type, as that of a bulk job is. */
function creates(api: Api, operation: ApiOperation, get: ApiOperation | undefined): boolean {
  const schemaOf = ({ success }: ApiOperation) => success.content['application/json']?.schema.value
  const [created, wanted] = [schemaOf(operation), get && schemaOf(get)]
  if (operation.success.status !== 201 || !created || !wanted) return false
  return api.follow(created) === api.follow(wanted)
}

/** `TASK_ID` for `task` and `task_id`. */
function variableName(idParameter: string): string {
  return `${recordTypeOf(idParameter).toUpperCase()}_ID`
}

function findCreatedVariable(api: Api, operation: ApiOperation): string | undefined {
  const { method, path, success } = operation
  const schema = success.content['application/json']?.schema.value
  if (method !== 'POST' || !schema || !api.follow(schema).properties?.id) return undefined
  const recordOperation =
    api.operations.find((other) => other.path.startsWith(`${path}/{`)) ??
    api.operations.find(
      (other) => /\}$/.test(other.path) && other.method === 'GET' && creates(api, operation, other),
    )
  const [idParameter] = recordOperation ? parameterNames(recordOperation.path) : []
  return idParameter && variableName(idParameter)
}
