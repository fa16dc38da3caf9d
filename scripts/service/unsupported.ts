/** Finds everything in a document that the toolchain does not support. docs/documents.md lists what
 *  is supported. */
import { locateParameters } from '../model/operations.ts'
import { findPathProblems, listOperationPaths, type OperationPath } from '../model/paths.ts'
import { toOperationId } from '../model/plain-operations.ts'
import { listSubschemas, type Schema } from '../model/schema.ts'
import {
  type Finding,
  isObject,
  type Located,
  lineOf,
  type Path,
  type Source,
  valueAt,
} from '../model/source.ts'

export function findUnsupported(openapi: Source): Finding[] {
  const version = findVersionProblem(openapi)
  if (version.length > 0) return version
  return unique([
    ...findOperationProblems(openapi),
    ...findSecurityProblems(openapi),
    ...listSchemas(openapi).flatMap(findSchemaProblems),
  ])
}

/** Finds an unsupported version or dialect, or a document without paths. Returns at most one
 *  finding: no other check makes sense for such a document. */
export function findVersionProblem(openapi: Source): Finding[] {
  const { swagger, openapi: version, jsonSchemaDialect } = openapi.root as Record<string, unknown>
  const refuse = (key: string, problem: string) => [{ source: openapi, path: [key], problem }]
  if (swagger !== undefined)
    return refuse(
      'swagger',
      'is Swagger 2.0: convert it to OpenAPI 3.0, for example with swagger2openapi',
    )
  if (!/^3\.[01](\.|$)/.test(String(version)))
    return refuse('openapi', `is OpenAPI ${String(version)}: write openapi: 3.0.3 or 3.1.0`)
  if (jsonSchemaDialect !== undefined && !String(jsonSchemaDialect).includes('/oas/3.1/'))
    return refuse(
      'jsonSchemaDialect',
      'names another dialect of JSON Schema: use that of OpenAPI 3.1',
    )
  if (!isObject(valueAt(openapi.root, ['paths'])))
    return refuse('paths', 'has no paths: add the operations of the API')
  return []
}

function findOperationProblems(openapi: Source): Finding[] {
  const operations = listOperationPaths(openapi)
  return [
    ...findRepeatedNames(openapi, operations),
    ...findPathProblems(openapi),
    ...operations.flatMap((path) => findInOperation(openapi, path)),
  ]
}

/** The ID names a file and a function, so `get-pet` and `getPet` are the same. */
function findRepeatedNames(openapi: Source, operations: OperationPath[]): Finding[] {
  const first = new Map<string, Path>()
  return operations.flatMap((path) => {
    const [, template, method] = path
    const id = toOperationId(valueAt(openapi.root, [...path, 'operationId']), method, template)
    // Some file systems do not distinguish upper and lower case.
    const earlier = first.get(id.toLowerCase())
    if (!earlier) {
      first.set(id.toLowerCase(), path)
      return []
    }
    const line = lineOf({ source: openapi, path: earlier })
    const problem = `repeats the operation name ${id} of line ${line}: give each operation its own operationId`
    return [{ source: openapi, path: [...path, 'operationId'], problem }]
  })
}

const UNSUPPORTED_STYLES = ['matrix', 'label']

function findInOperation(openapi: Source, path: OperationPath): Finding[] {
  const sources = { [openapi.file]: openapi }
  const responses = valueAt(openapi.root, [...path, 'responses'])
  const statuses = Object.keys(isObject(responses) ? responses : {}).filter(
    (status) => !status.startsWith('x-'),
  )
  const found: Finding[] = statuses
    .filter((status) => !/^([2-5]\d\d|[2-5]XX|default)$/i.test(status))
    .map((status) => ({
      source: openapi,
      path: [...path, 'responses', status],
      problem: `${status} is no status of a final response: use for example 200, 4XX or default`,
    }))
  for (const status of statuses)
    if (!isObject(valueAt(responses, [status])))
      found.push({
        source: openapi,
        path: [...path, 'responses', status],
        problem: `response ${status} is empty: add a description`,
      })
  if (statuses.length === 0)
    found.push({ source: openapi, path, problem: 'has no responses: add at least one' })
  for (const { target } of locateParameters(sources, { source: openapi, path }))
    found.push(...findInParameter(target))
  return found
}

function findInParameter({ source, path, value }: Located): Finding[] {
  const { name, in: where, style, schema, content } = (value ?? {}) as Record<string, unknown>
  const refuse = (problem: string): Finding[] => [{ source, path, problem }]
  if (typeof name !== 'string' || !['path', 'query', 'header', 'cookie'].includes(String(where)))
    return refuse('a parameter needs a name, and in: path, query, header or cookie')
  if (UNSUPPORTED_STYLES.includes(String(style)))
    return refuse(`style: ${style} is not supported: use style: simple`)
  if (!isObject(schema) && !isObject(content) && schema !== true)
    return refuse(`parameter ${name} has no schema: add one`)
  return []
}

function findSecurityProblems(openapi: Source): Finding[] {
  const schemes = (valueAt(openapi.root, ['components', 'securitySchemes']) ?? {}) as object
  const schemeProblems = Object.entries(schemes).flatMap(([name, scheme]) => {
    const { type, scheme: http } = (scheme ?? {}) as Record<string, unknown>
    const isKnown =
      ['apiKey', 'oauth2', 'openIdConnect'].includes(String(type)) ||
      (type === 'http' && ['basic', 'bearer'].includes(String(http).toLowerCase()))
    const problem =
      `${name} is a security scheme that is not supported: use apiKey, oauth2, openIdConnect, ` +
      'or http with basic or bearer'
    const path = ['components', 'securitySchemes', name]
    return isKnown ? [] : [{ source: openapi, path, problem }]
  })
  const owners: Path[] = [[], ...listOperationPaths(openapi)]
  const requirementProblems = owners.flatMap((owner) => {
    const list = valueAt(openapi.root, [...owner, 'security'])
    const requirements: unknown[] = Array.isArray(list) ? list : []
    const names = requirements.filter(isObject).flatMap(Object.keys)
    if (!requirements.every(isObject))
      return {
        source: openapi,
        path: [...owner, 'security'],
        problem: 'security has an empty entry: name a scheme, or write {} for access without one',
      }
    return names
      .filter((name) => !Object.hasOwn(schemes, name))
      .map((name) => ({
        source: openapi,
        path: [...owner, 'security'],
        problem: `names the security scheme ${name}: add it to components.securitySchemes`,
      }))
  })
  return [...schemeProblems, ...requirementProblems]
}

/** The schemas of the document, without the schemas inside them. */
export function listSchemas(openapi: Source): Located<Schema>[] {
  const found: Located<Schema>[] = []
  const visit = (node: unknown, path: Path): void => {
    if (!isObject(node)) return
    const isComponents = path[0] === 'components' && path.length === 2
    // The document chooses the keys of these mappings. A header can have the name `schema`.
    const hasChosenKeys = isComponents || path.at(-1) === 'headers'
    for (const [key, value] of Object.entries(node)) {
      const at = [...path, key]
      if (hasChosenKeys) visit(value, at)
      else if (key === 'schema' && isObject(value))
        found.push({ source: openapi, path: at, value: value as Schema })
      else if (key !== 'schemas' && !/^(examples?|x-.*)$/.test(key)) visit(value, at)
    }
  }
  visit(valueAt(openapi.root, ['paths']), ['paths'])
  visit(valueAt(openapi.root, ['components']), ['components'])
  const named = (valueAt(openapi.root, ['components', 'schemas']) ?? {}) as Record<string, Schema>
  for (const [name, value] of Object.entries(named))
    found.push({ source: openapi, path: ['components', 'schemas', name], value })
  return found
}

const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']
/** Keywords that change the target of a `$ref`. */
const IDENTIFIERS = ['$id', '$anchor', '$dynamicRef', '$dynamicAnchor', '$recursiveRef']

function findSchemaProblems({ source, path, value }: Located<Schema>): Finding[] {
  if (typeof value === 'boolean') return []
  if (!isObject(value))
    return [{ source, path, problem: 'is no schema: write one, for example {} for any value' }]
  const schema = value as Schema
  const refuse = (key: string, problem: string): Finding => ({
    source,
    path: [...path, key],
    problem,
  })
  const found: Finding[] = []
  for (const type of [schema.type ?? []].flat())
    if (!TYPES.includes(type))
      found.push(refuse('type', `${type} is no type: use ${TYPES.join(', ')}`))
  for (const key of IDENTIFIERS)
    if (schema[key] !== undefined)
      found.push(refuse(key, `${key} is not supported: refer to the schema by its JSON Pointer`))
  if (schema.pattern !== undefined && !isPattern(schema.pattern))
    found.push(
      refuse('pattern', `${schema.pattern} is no regular expression of JavaScript: rewrite it`),
    )
  for (const key of ['allOf', 'oneOf', 'anyOf'] as const)
    if (schema[key] !== undefined && !Array.isArray(schema[key]))
      found.push(refuse(key, `${key} must be a list of schemas: correct it`))
  found.push(...findPropertyProblems({ source, path, value: schema }))
  if (found.length > 0) return found
  return listSubschemas(schema).flatMap(({ subschema, steps }) =>
    findSchemaProblems({ source, path: [...path, ...steps], value: subschema }),
  )
}

function findPropertyProblems({ source, path, value }: Located<Schema>): Finding[] {
  const { properties = {} } = value
  const at = [...path, 'properties']
  if (!isObject(properties) || Array.isArray(properties))
    return [
      { source, path: at, problem: 'properties must be a mapping of names to schemas: correct it' },
    ]
  return Object.entries(properties)
    .filter(([, property]) => !isObject(property) && typeof property !== 'boolean')
    .map(([name]) => ({
      source,
      path: [...at, name],
      problem:
        name === '$ref'
          ? `property ${name} is no schema: a reference stands in place of a schema, not of all properties`
          : `property ${name} is no schema: write its schema, for example { type: string }`,
    }))
}

function isPattern(pattern: unknown): boolean {
  try {
    return new RegExp(String(pattern)) !== undefined
  } catch {
    return false
  }
}

/** Removes repeated findings: operations can share parameters. */
export function unique(findings: Finding[]): Finding[] {
  const byText = findings.map((finding): [string, Finding] => [
    `${finding.path.join('/')} ${finding.problem}`,
    finding,
  ])
  return [...new Map(byText).values()]
}
