/** Schemas of an OpenAPI 3.0 or 3.1 document as functions that validate values. */
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { type Choice, type Resolve, readDiscriminator } from '../model/discriminators.ts'
import { dereference, locate } from '../model/references.ts'
import { ANNOTATIONS, chooseSchema, mapSubschemas, type Schema } from '../model/schema.ts'
import { isObject, type Located, type Source, valueAt } from '../model/source.ts'

/** A `readOnly` field is not required in requests. A `writeOnly` field is not required in
 *  responses. */
export type Direction = 'request' | 'response'

export interface Problem {
  /** For example `body.tags.0`. Empty for the whole value. */
  field: string
  message: string
}

export interface Validation {
  /** The problems of the value. Sets missing defaults of a request in place. */
  check(schema: Located<Schema>, direction: Direction, value: unknown): Problem[]
  /** Like `check` for a request whose values are text, for example a query. Also converts the text
   *  to the types of the schema. */
  convertInPlace(schema: Located<Schema>, value: unknown): Problem[]
}

interface Options {
  coerceTypes: boolean | 'array'
  validateFormats?: boolean
}

/** Schemas are compiled at their first use: a large document has thousands. */
export function newValidation(
  openapi: Source,
  options: Pick<Options, 'validateFormats'> = {},
): Validation {
  const strictValues = newCompiler(openapi, { ...options, coerceTypes: false })
  const texts = newCompiler(openapi, { ...options, coerceTypes: 'array' })
  return {
    check: (schema, direction, value) => run(strictValues(schema, direction), value),
    convertInPlace: (schema, value) => run(texts(schema, 'request'), value),
  }
}

export function isOpenapi31({ root }: Source): boolean {
  return String(valueAt(root, ['openapi'])).startsWith('3.1')
}

function newAjv(openapi: Source, options: Options): Ajv {
  const ajv = new (isOpenapi31(openapi) ? Ajv2020 : Ajv)({
    strict: false,
    validateSchema: false,
    allErrors: true,
    useDefaults: true,
    unicodeRegExp: false,
    inlineRefs: false,
    ...options,
    logger: false,
  })
  addFormats.default(ajv)
  return ajv
}

function newCompiler(openapi: Source, options: Options) {
  const ajv = newAjv(openapi, options)
  const sources = { [openapi.file]: openapi }
  const is31 = isOpenapi31(openapi)
  const registered = new Set<string>()
  const compiled = new Map<Schema, Partial<Record<Direction, ValidateFunction>>>()

  function prepare(schema: Schema, direction: Direction): Schema {
    if (!isObject(schema)) return schema
    const { $ref, ...siblings } = schema
    if ($ref === undefined) return convert(schema, direction)
    const reference = { $ref: register($ref, direction) }
    // OpenAPI 3.0.3, Reference Object: keywords beside `$ref` are ignored.
    return is31 ? { ...convert(siblings, direction), ...reference } : reference
  }

  const resolve: Resolve = (schema) =>
    dereference(sources, { source: openapi, path: [], value: schema }).value

  function convert(schema: Schema, direction: Direction): Schema {
    const chosen = withChoices(schema, direction, {
      resolve,
      isText: options.coerceTypes !== false,
    })
    return toJsonSchemaOf(options.coerceTypes ? withAnyOf(chosen) : chosen, direction, {
      convert: (subschema) => prepare(subschema, direction),
      resolve,
    })
  }

  function register(ref: string, direction: Direction): string {
    const id = `/${direction}/${encodeURIComponent(ref)}`
    if (!registered.has(id)) {
      registered.add(id) // before `prepare`: the schema may contain itself
      ajv.addSchema(prepare(locate(sources, openapi, ref).value as Schema, direction), id)
    }
    return id
  }

  return ({ value }: Located<Schema>, direction: Direction): ValidateFunction => {
    const byDirection = compiled.get(value) ?? {}
    compiled.set(value, byDirection)
    byDirection[direction] ??= ajv.compile(prepare(value, direction))
    return byDirection[direction]
  }
}

/** Lets the discriminator choose one alternative, so that only errors of that one are reported. */
function withChoices(
  schema: Schema,
  direction: Direction,
  { resolve, isText }: { resolve: Resolve; isText: boolean },
): Schema {
  const discriminator = readDiscriminator(schema, resolve)
  if (discriminator === undefined) return schema
  const { name, keyword, choices, hasNull } = discriminator
  const isHidden = ({ alternative }: Choice): boolean =>
    resolve(resolve(alternative).properties?.[name] ?? {})[HIDDEN_BY[direction]] === true
  if (choices.some(isHidden)) return schema
  // Ajv compares a text with the values of the choices before Ajv converts the text.
  const hasNonText = choices.some(({ values }) => values.some((value) => typeof value !== 'string'))
  if (isText && hasNonText) return schema
  const accept = (values: readonly unknown[]): Schema => ({
    type: 'object',
    required: [name],
    properties: { [name]: { enum: values } },
  })
  const cases = choices.map(({ values, alternative }): [Schema, Schema] => [
    accept(values),
    alternative,
  ])
  const chosen = chooseSchema(cases, accept(choices.flatMap(({ values }) => values)))
  const { [keyword]: _alternatives, nullable, ...rest } = schema
  const allOf = [...(schema.allOf ?? []), hasNull ? nullOr(chosen) : chosen]
  // Ajv reads the default of a property from the schema of the property, not from an `else` in it.
  return nullable === true
    ? { default: schema.default, ...nullOr({ ...rest, allOf }) }
    : { ...rest, allOf }
}

/** The schema, or null. Unlike `anyOf`, adds no error about null for values other than null. */
function nullOr(schema: Schema): Schema {
  return chooseSchema([[{ type: 'null' }, {}]], schema)
}

/** Turns `oneOf` into `anyOf`: a text can be valid by several types, such as `1` by integer and by
 *  string. */
function withAnyOf({ oneOf, ...rest }: Schema): Schema {
  return oneOf === undefined || rest.anyOf !== undefined
    ? { oneOf, ...rest }
    : { ...rest, anyOf: oneOf }
}

/** The keyword of the properties that requests or responses do not have. */
const HIDDEN_BY = { request: 'readOnly', response: 'writeOnly' } as const

interface Conversion {
  convert(subschema: Schema): Schema
  resolve(property: Schema): Schema
}

/** Annotations, and keywords that are converted to others. */
const DROPPED = new Set([
  ...ANNOTATIONS,
  ...['$comment', 'discriminator', 'nullable', 'readOnly', 'writeOnly'],
])

function toJsonSchemaOf(
  schema: Schema,
  direction: Direction,
  { convert, resolve }: Conversion,
): Schema {
  const kept = Object.fromEntries(
    Object.entries(schema).filter(
      ([keyword]) => !DROPPED.has(keyword) && !keyword.startsWith('x-'),
    ),
  ) as Schema
  const result: Schema = mapSubschemas(kept, convert)
  if (direction === 'response') delete result.default
  const hidden = HIDDEN_BY[direction]
  const isHidden = (name: string): boolean => {
    const property = schema.properties?.[name]
    return isObject(property) && (property[hidden] === true || resolve(property)[hidden] === true)
  }
  // Public documents have `required: true` from JSON Schema draft 3, which says nothing here.
  if (!Array.isArray(result.required)) delete result.required
  else result.required = result.required.filter((name) => !isHidden(name))
  applyExclusive(result)
  return schema.nullable === true ? withNull(result) : result
}

/** Converts `exclusiveMinimum: true` beside `minimum`, of OpenAPI 3.0, to JSON Schema. */
function applyExclusive(schema: Schema): void {
  for (const [exclusive, limit] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (schema[exclusive] === true && schema[limit] !== undefined) {
      schema[exclusive] = schema[limit]
      delete schema[limit]
    } else if (typeof schema[exclusive] === 'boolean') delete schema[exclusive]
  }
}

/** Lets the schema accept null, even without a `type`: public documents write `nullable` beside
 *  `allOf`, for example. */
function withNull(schema: Schema): Schema {
  return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: 'null' }] }
}

/** Ajv reports the errors of every alternative, which can be very many. */
const MAX_PROBLEMS = 20

function run(validate: ValidateFunction, value: unknown): Problem[] {
  if (validate(value)) return []
  // An error of `if` only says that `then` or `else` has failed. Ajv also reports their errors.
  const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'if')
  const problems = errors.map(toProblem)
  const unique = new Map(problems.map((problem) => [JSON.stringify(problem), problem]))
  return [...unique.values()].slice(0, MAX_PROBLEMS)
}

function toProblem({ instancePath, keyword, params, message }: ErrorObject): Problem {
  const steps = instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (keyword === 'required')
    return { field: [...steps, params.missingProperty].join('.'), message: 'is required' }
  if (keyword === 'additionalProperties')
    return { field: [...steps, params.additionalProperty].join('.'), message: 'is unknown' }
  if (keyword === 'enum')
    return {
      field: steps.join('.'),
      message: `must be one of ${params.allowedValues.map(String).join(', ')}`,
    }
  return { field: steps.join('.'), message: message ?? 'is invalid' }
}
