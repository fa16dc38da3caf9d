import type { Contract } from '../model/contract.ts'
import { isJson, type Operation, type OperationResponse } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import type { Located, Sources } from '../model/source.ts'
import { MODULE_CODE } from './ajv.ts'
import { Compiler, type Openness } from './compiler.ts'
import { HEADER, literal } from './typescript-text.ts'

/** The text of generated/validators.js: the functions that validate requests, responses and
 *  deliveries, in tables by operation or event type. */
export function renderValidators({ sources, operations, events }: Contract): string {
  const compiler = new Compiler(sources, MODULE_CODE)
  const tables = {
    params: table(operations, (operation) => ({
      path: compileParameters(compiler, operation, 'path'),
      query: compileParameters(compiler, operation, 'query'),
      headers: compileRequestHeaders(compiler, operation),
    })),
    bodies: Object.fromEntries(
      operations.flatMap(({ id, body }) =>
        body ? [[id, compile(compiler, `${id}_body`, body.schema, 'open')]] : [],
      ),
    ),
    responses: table(operations, ({ id, responses }) =>
      Object.fromEntries(
        responses.map((response) => [
          response.status,
          {
            headers: compileResponseHeaders(
              compiler,
              sources,
              `${id}_${response.status}_headers`,
              response,
            ),
            body: compileResponseBody(compiler, `${id}_${response.status}`, response),
          },
        ]),
      ),
    ),
    events: Object.fromEntries(
      events.map(({ type, payloadName, payload, headers }) => [
        type,
        {
          payload: compile(compiler, `${payloadName}_payload`, payload, 'closed'),
          // Open: a delivery also has headers that asyncapi.yaml does not declare.
          headers: compile(compiler, `${payloadName}_headers`, headers, 'open'),
        },
      ]),
    ),
  }
  return (
    HEADER +
    compiler.code() +
    Object.entries(tables)
      .map(([name, rows]) => `\nexport const ${name} = ${unquote(literal(rows))}\n`)
      .join('')
  )
}

/** The text of generated/validators.d.ts. */
export function renderValidatorTypes(): string {
  return `${HEADER}import type { ErrorObject } from 'ajv'
import type { DeliveredType } from './asyncapi.ts'
import type { OperationId } from './operations.ts'

/** Returns whether the data is valid. If not, \`errors\` has the reasons until the next call. */
export type Validator = ((data: unknown) => boolean) & { errors?: ErrorObject[] | null }

export const params: { readonly [Id in OperationId]: ParameterValidators }

export interface ParameterValidators {
  readonly path: Validator
  /** Takes converted values, for example numbers, and adds missing defaults to them. Unknown names
   *  are errors. */
  readonly query: Validator
  /** Null if the operation declares no headers. \`names\` are as declared; \`validator\` takes lower-case
   *  names and ignores other headers. */
  readonly headers: { readonly names: readonly string[]; readonly validator: Validator } | null
}

/** Only of operations with a body. Adds missing defaults to the body. */
export const bodies: { readonly [Id in OperationId]?: Validator }

/** By status. Additional properties are errors unless the schema allows them. */
export const responses: {
  readonly [Id in OperationId]: { readonly [status: number]: ResponseValidators }
}

export interface ResponseValidators {
  /** Takes headers by lower-case name. An integer may be text or a number. Other headers are
   *  ignored. */
  readonly headers: Validator | null
  /** By media type; null for other types than JSON. Null if the response has no body. */
  readonly body: { readonly [mediaType: string]: Validator | null } | null
}

/** Additional properties of a payload are errors. Headers have lower-case names; other headers are
 *  ignored. */
export const events: {
  readonly [T in DeliveredType]: { readonly payload: Validator; readonly headers: Validator }
}
`
}

function table<T>(operations: Operation[], row: (operation: Operation) => T): Record<string, T> {
  return Object.fromEntries(operations.map((operation) => [operation.id, row(operation)]))
}

function compile(
  compiler: Compiler,
  name: string,
  placed: Located<Schema>,
  openness: Openness,
): string {
  return compiler.add(name, compiler.prepare(placed, openness), placed)
}

/** Compiles the schema of an object with all parameters in `where`, and returns the name of its
 *  function. The schema allows unknown headers, but no other unknown parameters. */
function compileParameters(
  compiler: Compiler,
  { id, place, parameters }: Operation,
  where: 'path' | 'query' | 'header',
): string {
  const declared = parameters.filter((parameter) => parameter.in === where)
  const toName = (name: string) => (where === 'header' ? name.toLowerCase() : name)
  const schema: Schema = {
    type: 'object',
    properties: Object.fromEntries(
      declared.map(({ name, schema }) => [
        toName(name),
        compiler.share(compiler.prepareProperty(schema, 'open'), schema),
      ]),
    ),
    required: declared.filter(({ required }) => required).map(({ name }) => toName(name)),
    additionalProperties: where === 'header',
  }
  return compiler.add(declared.length === 0 ? 'no_parameters' : `${id}_${where}`, schema, place)
}

function compileRequestHeaders(
  compiler: Compiler,
  operation: Operation,
): { names: string[]; validator: string } | null {
  const names = operation.parameters
    .filter((parameter) => parameter.in === 'header')
    .map(({ name }) => name)
  if (names.length === 0) return null
  return { names, validator: compileParameters(compiler, operation, 'header') }
}

function compileResponseHeaders(
  compiler: Compiler,
  sources: Sources,
  name: string,
  { place, headers }: OperationResponse,
): string | null {
  const declared = Object.entries(headers)
  if (declared.length === 0) return null
  const schema: Schema = {
    type: 'object',
    properties: Object.fromEntries(
      declared.map(([name, header]) => {
        const schema = dereference(sources, header.schema)
        return [name, compiler.share(headerValue(compiler.prepare(schema, 'open')), schema)]
      }),
    ),
    required: declared.filter(([, { required }]) => required).map(([name]) => name),
  }
  return compiler.add(name, schema, place)
}

const INTEGER_HEADER: object = { type: ['integer', 'string'], pattern: '^-?\\d+$' }

/** Headers are text, but Node also accepts a number for an integer. */
function headerValue(schema: Schema): Schema {
  return schema.type === 'integer' ? { ...schema, ...INTEGER_HEADER } : schema
}

function compileResponseBody(
  compiler: Compiler,
  name: string,
  { content }: OperationResponse,
): Record<string, string | null> | null {
  const bodies = Object.values(content).map(({ mediaType, schema }) => [
    mediaType,
    isJson(mediaType) ? compile(compiler, `${name}_body`, schema, 'closed') : null,
  ])
  return bodies.length === 0 ? null : Object.fromEntries(bodies)
}

/** Turns the quoted function names of a table into identifiers. */
function unquote(text: string): string {
  return text.replace(/: '(\w+)'/g, ': $1')
}
