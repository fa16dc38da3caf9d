/** Finds what makes the generated code wrong or useless, although the toolchain supports each
 *  construct. docs/documents.md says which faults are refused. */
import {
  findCrossedBounds,
  findMistypedOptions,
  findWrongTypes,
  type KeywordFault,
} from '../model/keyword-values.ts'
import { locateParameters, METHODS } from '../model/operations.ts'
import { listOperationPaths, type OperationPath, parameterNames } from '../model/paths.ts'
import { locate } from '../model/references.ts'
import { listSubschemas, type Schema } from '../model/schema.ts'
import { type Finding, isObject, type Located, type Source, valueAt } from '../model/source.ts'
import { isOpenapi31, newValidation, type Validation } from './schemas.ts'
import { listSchemas } from './unsupported.ts'

export function findFaults(openapi: Source): Finding[] {
  return [
    ...findUnknownMethods(openapi),
    ...listOperationPaths(openapi).flatMap((path) => [
      ...findWrongParameters(openapi, path),
      ...findPathParameterFaults(openapi, path),
    ]),
    ...findSchemaFaults(openapi),
  ]
}

const PATH_ITEM_FIELDS: readonly string[] = [
  ...METHODS,
  ...['$ref', 'summary', 'description', 'servers', 'parameters'],
]

/** Finds keys of a path that are neither a method nor another field of OpenAPI: the generated code
 *  would lack their operations. */
function findUnknownMethods(openapi: Source): Finding[] {
  return Object.entries(valueAt(openapi.root, ['paths']) as object).flatMap(([path, item]) =>
    Object.keys(path.startsWith('x-') ? {} : (item ?? {}))
      .filter((key) => !key.startsWith('x-') && !PATH_ITEM_FIELDS.includes(key))
      .map((key) => ({
        source: openapi,
        path: ['paths', path, key],
        problem: `${key} is no HTTP method of OpenAPI: use ${METHODS.join(', ')}`,
      })),
  )
}

/** Finds `parameters` that is not a list: the generated code would lack the parameters. Also finds
 *  `required` that is not a boolean: the generated code might not require the parameter. */
function findWrongParameters(openapi: Source, path: OperationPath): Finding[] {
  const lists = [path.slice(0, 2), path].map((owner) => [...owner, 'parameters'])
  const noLists = lists
    .filter((at) => !Array.isArray(valueAt(openapi.root, at) ?? []))
    .map((at) => ({ source: openapi, path: at, problem: 'parameters must be a list: correct it' }))
  const wrong = listParameters(openapi, path)
    .filter(({ required = false }) => typeof required !== 'boolean')
    .map(({ target, required }) => ({
      source: openapi,
      path: [...target, 'required'],
      problem: `required must be true or false, not ${JSON.stringify(required)}: correct it`,
    }))
  return [...noLists, ...wrong]
}

/** Finds parameters in the path that are not declared: the handler would not get them. Also finds
 *  declared path parameters that the path lacks: every request would be refused. */
function findPathParameterFaults(openapi: Source, path: OperationPath): Finding[] {
  const [, template] = path
  const declared = listParameters(openapi, path)
  // `findInParameter` in unsupported.ts reports parameters without a name.
  if (declared.some(({ name }) => name === undefined)) return []
  const inPath = declared.filter((parameter) => parameter.in === 'path')
  const names = parameterNames(template)
  const missing = names.filter((name) => !inPath.some((parameter) => parameter.name === name))
  return [
    ...missing.map((name) => ({
      source: openapi,
      path,
      problem: `parameters do not declare {${name}} of ${template}: add it with in: path`,
    })),
    ...inPath
      .filter(({ name }) => !names.includes(String(name)))
      .map(({ name, path: at }) => ({
        source: openapi,
        path: at,
        problem: `${template} has no parameter ${name}: add {${name}} to the path, or remove it here`,
      })),
  ]
}

function listParameters(openapi: Source, path: OperationPath) {
  const sources = { [openapi.file]: openapi }
  return locateParameters(sources, { source: openapi, path }).map(({ at, target }) => {
    const fields = (target.value ?? {}) as { name?: unknown; in?: unknown; required?: unknown }
    return { ...fields, path: at, target: target.path }
  })
}

function findSchemaFaults(openapi: Source): Finding[] {
  const is31 = isOpenapi31(openapi)
  const found: Finding[] = []
  const withDefault: Located<Schema>[] = []
  const visit = ({ source, path, value }: Located<Schema>): void => {
    if (!isObject(value)) return
    if (isEndless(openapi, value.$ref)) {
      const problem = `${value.$ref} refers back to itself: write a schema in place of a reference`
      found.push({ source, path: [...path, '$ref'], problem })
      return
    }
    // OpenAPI 3.0.3, Reference Object: keywords beside `$ref` are ignored.
    if (value.$ref !== undefined && !is31) return
    const faults = findKeywordFaults(value, is31)
    for (const { steps, problem } of faults)
      found.push({ source, path: [...path, ...steps], problem })
    if (value.default !== undefined && faults.length === 0)
      withDefault.push({ source, path, value })
    for (const { subschema, steps } of listSubschemas(value))
      visit({ source, path: [...path, ...steps], value: subschema })
  }
  for (const schema of listSchemas(openapi)) visit(schema)
  return [...found, ...findFaultyDefaults(openapi, withDefault)]
}

/** Whether the chain of references that begins with `ref` is endless: it never reaches a schema. */
function isEndless(openapi: Source, ref: unknown): boolean {
  const seen = new Set<string>()
  let next = ref
  while (typeof next === 'string') {
    if (seen.has(next)) return true
    seen.add(next)
    next = valueAt(locate({ [openapi.file]: openapi }, openapi, next).value, ['$ref'])
  }
  return false
}

function findKeywordFaults(schema: Schema, is31: boolean): KeywordFault[] {
  return [
    ...findWrongTypes(schema, is31),
    ...findCrossedBounds(schema),
    ...findMistypedOptions(schema),
  ]
}

/** Defaults that their schema refuses: each request without the value would be refused. */
function findFaultyDefaults(openapi: Source, schemas: Located<Schema>[]): Finding[] {
  // Formats are not checked: many published documents have an empty default for a URL.
  const validation = newValidation(openapi, { validateFormats: false })
  // Many operations have equal parameters and properties, which are checked once.
  const reasonsBySchema = new Map<string, string[]>()
  return schemas.flatMap((schema) => {
    const key = JSON.stringify(schema.value)
    const reasons = reasonsBySchema.get(key) ?? findReasons(validation, schema)
    reasonsBySchema.set(key, reasons)
    if (reasons.length === 0) return []
    const { source, path, value } = schema
    const problem = `the default ${JSON.stringify(value.default)} ${reasons.join(', ')}: correct the default or its schema`
    return [{ source, path: [...path, 'default'], problem }]
  })
}

/** Why the schema refuses its default. */
function findReasons(validation: Validation, schema: Located<Schema>): string[] {
  try {
    const check = (direction: 'request' | 'response') =>
      validation.check(schema, direction, structuredClone(schema.value.default))
    const problems = check('request')
    // The schema may be for responses only. Then its default may lack what only requests need.
    if (problems.length > 0 && check('response').length === 0) return []
    return problems.map(({ field, message }) => `${field} ${message}`.trim())
  } catch {
    // Another check reports why the schema, or a schema in it, cannot be compiled.
    return []
  }
}
