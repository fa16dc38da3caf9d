/** Checks the examples of bodies, of response headers and of messages, and `x-test-value`. Redocly checks those of
 *  parameters and schemas. */
import { CHECKING_CODE } from '../generate/ajv.ts'
import { Compiler, type Openness } from '../generate/compiler.ts'
import type { Contract } from '../model/contract.ts'
import type { EventMessage } from '../model/events.ts'
import { listNodes } from '../model/nodes.ts'
import { isJson, type MediaType } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import {
  type Finding,
  isObject,
  type Located,
  type Place,
  type Sources,
  valueAt,
} from '../model/source.ts'

export function findInvalidExamples({ sources, openapi, operations, events }: Contract): Finding[] {
  const compiler = new Compiler(sources, CHECKING_CODE)
  const requests = operations.flatMap(({ body }) => body ?? [])
  const responses = operations.flatMap((operation) => operation.responses)
  const headers = responses.flatMap((response) => Object.values(response.headers))
  // Each once: many operations share a response, and many responses share a header.
  const bodies = new Set(responses.flatMap(({ content }) => Object.values(content)))
  const headerSchemas = new Map(headers.map(({ schema }) => [schema.value, schema]))
  return [
    ...events.flatMap((event) => checkMessage(compiler, event)),
    ...requests.flatMap((body) => checkBody(sources, compiler, body, 'open')),
    ...[...bodies].flatMap((body) => checkBody(sources, compiler, body, 'closed')),
    ...[...headerSchemas.values()].flatMap((schema) => checkHeader(compiler, schema)),
    ...listNodes(openapi.root).flatMap(({ path, value }) =>
      TEST_VALUE in value ? checkTestValue(compiler, { source: openapi, path, value }) : [],
    ),
  ]
}

const TEST_VALUE = 'x-test-value'

function checkTestValue(compiler: Compiler, schema: Located<Schema>): Finding[] {
  const at = [...schema.path, TEST_VALUE]
  return check(compiler, schema, 'closed', {
    source: schema.source,
    path: at,
    value: schema.value[TEST_VALUE],
  })
}

function checkMessage(compiler: Compiler, { payload, headers }: EventMessage): Finding[] {
  const { source, path } = payload
  const message = path.slice(0, -1)
  const list = valueAt(source.root, [...message, 'examples'])
  return (Array.isArray(list) ? list : []).flatMap((example, index) =>
    Object.entries({ payload, headers }).flatMap(([part, schema]) => {
      const at = [...message, 'examples', index, part]
      return isObject(example) && part in example
        ? check(compiler, schema, 'closed', { source, path: at, value: example[part] })
        : []
    }),
  )
}

function checkBody(
  sources: Sources,
  compiler: Compiler,
  { mediaType, place, schema }: MediaType,
  openness: Openness,
): Finding[] {
  if (!isJson(mediaType)) return []
  return listExamples(sources, place).flatMap((example) =>
    check(compiler, schema, openness, example),
  )
}

/** `example` and the values of `examples` of a Media Type Object. */
function listExamples(sources: Sources, { source, path }: Place): Located[] {
  const { example, examples } = valueAt(source.root, path) as {
    example?: unknown
    examples?: Record<string, unknown>
  }
  const named = Object.entries(examples ?? {}).map(([name, value]) => {
    const target = dereference(sources, { source, path: [...path, 'examples', name], value })
    return { ...target, path: [...target.path, 'value'], value: valueAt(target.value, ['value']) }
  })
  const unnamed = { source, path: [...path, 'example'], value: example }
  return [unnamed, ...named].filter(({ value }) => value !== undefined)
}

/** Checks the `example` beside the schema of the header. */
function checkHeader(compiler: Compiler, schema: Located<Schema>): Finding[] {
  const { source, path } = schema
  const at = [...path.slice(0, -1), 'example']
  const value = valueAt(source.root, at)
  return value === undefined ? [] : check(compiler, schema, 'closed', { source, path: at, value })
}

/** `closed` refuses undeclared fields, because the service sends none. */
function check(
  compiler: Compiler,
  schema: Located<Schema>,
  openness: Openness,
  { source, path, value }: Located,
): Finding[] {
  const validate = compiler.compile(compiler.prepare(schema, openness), schema)
  // A clone, because the validator adds defaults to the value.
  if (validate(structuredClone(value))) return []
  return (validate.errors ?? []).map(({ instancePath, message, params }) => ({
    source,
    path: [
      ...path,
      ...instancePath.split('/').slice(1),
      ...[params.additionalProperty ?? []].flat(),
    ],
    problem: `the example ${message}${formatParams(params)}: correct the example or its schema`,
  }))
}

/** For example ` {"limit":100}`. Empty if the text is too long, for example with many values. */
function formatParams(params: object): string {
  const text = JSON.stringify(params)
  return text.length > MAX_PARAMS_LENGTH ? '' : ` ${text}`
}

const MAX_PARAMS_LENGTH = 200
