/** Checks the examples that Redocly ignores: of messages and of response headers. */
import { CHECKING_CODE } from '../generate/ajv.ts'
import { type Compiler, newCompiler } from '../generate/compiler.ts'
import type { Contract } from '../model/contract.ts'
import type { EventMessage } from '../model/events.ts'
import type { Schema } from '../model/schema.ts'
import { type Finding, isObject, type Located, type Path, valueAt } from '../model/source.ts'

export function findInvalidExamples({ sources, operations, events }: Contract): Finding[] {
  const compiler = newCompiler(sources, CHECKING_CODE)
  const headers = operations.flatMap(({ responses }) =>
    responses.flatMap((response) => Object.values(response.headers)),
  )
  // Many responses share a header.
  const declared = new Map(headers.map(({ schema }) => [schema.value, schema]))
  return [
    ...events.flatMap((event) => checkMessage(compiler, event)),
    ...[...declared.values()].flatMap((schema) => checkHeader(compiler, schema)),
  ]
}

function checkMessage(compiler: Compiler, { payload, headers }: EventMessage): Finding[] {
  const message = payload.path.slice(0, -1)
  const list = valueAt(payload.source.root, [...message, 'examples'])
  return (Array.isArray(list) ? list : []).flatMap((example, index) =>
    Object.entries({ payload, headers }).flatMap(([part, schema]) =>
      isObject(example) && part in example
        ? check(compiler, schema, [...message, 'examples', index, part], example[part])
        : [],
    ),
  )
}

function checkHeader(compiler: Compiler, schema: Located<Schema>): Finding[] {
  const path = [...schema.path.slice(0, -1), 'example']
  const example = valueAt(schema.source.root, path)
  return example === undefined ? [] : check(compiler, schema, path, example)
}

/** Undeclared fields are problems, as in the service's responses. */
function check(
  compiler: Compiler,
  schema: Located<Schema>,
  path: Path,
  example: unknown,
): Finding[] {
  const validate = compiler.compile(compiler.prepare(schema, 'closed'), schema)
  if (validate(structuredClone(example))) return []
  return (validate.errors ?? []).map(({ instancePath, message, params }) => ({
    source: schema.source,
    path: [...path, ...instancePath.split('/').slice(1)],
    problem: `the example ${message} ${JSON.stringify(params)}: correct the example or its schema`,
  }))
}
