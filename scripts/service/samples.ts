/** Makes up values that are valid by a schema, where a document has no example. */
import {
  type Discriminator,
  findChoice,
  listDiscriminators,
  type Resolve,
  readDiscriminator,
} from '../model/discriminators.ts'
import { dereference } from '../model/references.ts'
import { listRequired, mergeSchemas, type Schema } from '../model/schema.ts'
import { isObject, type Located, type Source } from '../model/source.ts'
import type { Direction, Validation } from './schemas.ts'
import { textOfPattern } from './text-of-pattern.ts'

export interface Sampler {
  /** The example if it is valid. If not, the first valid value that one of the `STRATEGIES` makes
   *  up. Undefined if there is none. In the properties that discriminators name, the result has
   *  the values of `like`, so they choose the same alternatives. If no such result is valid, `like`
   *  is ignored. */
  sample(schema: Located<Schema>, direction: Direction, example?: unknown, like?: unknown): unknown
}

export function newSampler(openapi: Source, validation: Validation): Sampler {
  const resolve: Resolve = (schema) =>
    dereference(
      { [openapi.file]: openapi },
      { source: openapi, path: [], value: isObject(schema) ? schema : {} },
    ).value
  return {
    sample(schema, direction, example, like) {
      const tags = tagsOf(listDiscriminators(schema.value, resolve), like)
      const fits = (value: unknown) =>
        value !== undefined &&
        hasTags(value, tags) &&
        validation.check(schema, direction, structuredClone(value)).length === 0
      if (fits(example)) return example
      for (const strategy of STRATEGIES) {
        const value = new Sampling(resolve, direction, strategy, tags).value(schema.value)
        if (fits(value)) return value
      }
      const isLikeUsed = Object.keys(tags).length > 0
      return isLikeUsed ? this.sample(schema, direction, example) : undefined
    },
  }
}

type Tags = Readonly<Record<string, unknown>>

/** The properties of the value that choose alternatives, with their values. */
function tagsOf(discriminators: Discriminator[], value: unknown): Tags {
  const choosing = discriminators.filter((one) => findChoice(one, value))
  return Object.fromEntries(choosing.map(({ name }) => [name, (value as Tags)[name]]))
}

function hasTags(value: unknown, tags: Tags): boolean {
  return Object.entries(tags).every(
    ([name, expected]) => isObject(value) && (value as Tags)[name] === expected,
  )
}

/** One way to make up a value. */
interface Strategy {
  usesExamples: boolean
  /** The index of the alternative of `oneOf` and `anyOf`. */
  choice: number
  /** In responses, objects down to this depth have all their properties. All other objects have
   *  only the required ones. */
  fullDepth: number
}

const MAX_CHOICES = 8
/** The alternatives of some documents can be told apart only with all their properties, or without
 *  examples. */
const STRATEGIES: Strategy[] = [2, 6].flatMap((fullDepth) =>
  Array.from({ length: MAX_CHOICES }).flatMap((_, choice) =>
    [true, false].map((usesExamples) => ({ usesExamples, choice, fullDepth })),
  ),
)

const FORMATS: Record<string, string> = {
  'date-time': '2026-03-02T09:30:00Z',
  date: '2026-03-02',
  time: '09:30:00Z',
  duration: 'PT1H',
  email: 'ada@example.com',
  'idn-email': 'ada@example.com',
  uuid: '019cade2-11c0-7000-8000-000000000000',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  'uri-reference': '/example',
  'uri-template': '/example/{id}',
  iri: 'https://example.com/',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  byte: 'YQ==',
  regex: '^a$',
  'json-pointer': '/a',
}

/** The most schemas within each other: a schema that requires itself has no finite value. */
const MAX_DEPTH = 12

class Sampling {
  private readonly resolve: Resolve
  private readonly direction: Direction
  private readonly strategy: Strategy
  /** The discriminator properties that the whole value must have. */
  private readonly tags: Tags
  /** The schemas that contain the present one. */
  private readonly ancestors: Schema[] = []
  /** The number of values that contain the present one. */
  private depth = 0

  constructor(resolve: Resolve, direction: Direction, strategy: Strategy, tags: Tags) {
    this.resolve = resolve
    this.direction = direction
    this.strategy = strategy
    this.tags = tags
  }

  /** Makes up a value. If the schema is one of its own ancestors or too deep, the value is null, or
   *  undefined if null is not allowed. `index` makes the items of a list distinct. */
  value(schema: Schema, index = 0): unknown {
    const target = this.resolve(schema)
    if (this.ancestors.includes(target) || this.ancestors.length > MAX_DEPTH)
      return isNullable(target) ? null : undefined
    this.ancestors.push(target)
    const merged = this.merge(target)
    this.depth += 1
    const value = this.ofWhole(merged, index)
    this.depth -= 1
    this.ancestors.pop()
    return value
  }

  /** One schema with the keywords of all parts: `allOf`, and the alternative that the tags or the
   *  strategy choose. */
  private merge(schema: Schema): Schema {
    const { allOf = [], oneOf, anyOf, ...rest } = schema
    const alternatives = oneOf ?? anyOf ?? []
    const possible = alternatives.filter(
      (one) => !this.ancestors.includes(this.resolve(one)) && !isNull(one),
    )
    const discriminator = readDiscriminator(schema, this.resolve)
    const tags = this.depth === 0 ? this.tags : {}
    const wanted = discriminator && findChoice(discriminator, tags)
    const chosen =
      wanted?.alternative ?? possible[this.strategy.choice % possible.length] ?? alternatives[0]
    const tag = discriminator && chosen && tagSchema(discriminator, chosen, tags)
    return [...allOf, ...(chosen ? [chosen] : [])]
      .map((part) => this.mergeUnlessRecursive(part))
      .concat(tag ?? [])
      .reduce<Schema>(mergeSchemas, rest)
  }

  private mergeUnlessRecursive(part: Schema): Schema {
    const target = this.resolve(part)
    if (this.ancestors.includes(target)) return {}
    this.ancestors.push(target)
    const merged = this.merge(target)
    this.ancestors.pop()
    return merged
  }

  private ofWhole(schema: Schema, index: number): unknown {
    if (this.strategy.usesExamples) {
      const examples = Array.isArray(schema.examples) ? schema.examples : []
      const [example] = [schema.example, ...examples].filter((value) => value !== undefined)
      if (example !== undefined) return example
    }
    if ('const' in schema) return schema.const
    if (Array.isArray(schema.enum)) {
      const options = schema.enum.filter((option) => option !== null)
      return options[index % options.length] ?? null
    }
    if (schema.default !== undefined && index === 0) return schema.default
    switch (typeOf(schema)) {
      case 'object':
        return this.ofObject(schema)
      case 'array':
        return this.ofArray(schema)
      case 'integer':
      case 'number':
        return ofNumber(schema, index)
      case 'boolean':
        return true
      case 'null':
        return null
      default:
        return ofText(schema, index)
    }
  }

  private ofObject(schema: Schema): object {
    const { properties = {}, additionalProperties, minProperties = 0 } = schema
    const required = listRequired(schema)
    const hidden = this.direction === 'request' ? 'readOnly' : 'writeOnly'
    const isFull = this.direction === 'response' && this.ancestors.length <= this.strategy.fullDepth
    const result: Record<string, unknown> = {}
    for (const name of new Set([...Object.keys(properties), ...required])) {
      const isWanted = isFull || required.includes(name)
      const property = properties[name] ?? {}
      const isHidden = this.resolve(property)[hidden] === true
      const value = isWanted && !isHidden ? this.value(property) : undefined
      if (value !== undefined) result[name] = value
    }
    for (let count = 1; Object.keys(result).length < Number(minProperties); count += 1)
      result[`key${count}`] = this.value(
        isObject(additionalProperties) ? (additionalProperties as Schema) : {},
      )
    return result
  }

  private ofArray({ items = {}, minItems = 0, prefixItems }: Schema): unknown[] {
    const fixed = Array.isArray(prefixItems) ? prefixItems.map((item) => this.value(item)) : []
    // An empty list cannot be written in a query or a form.
    const wanted = Math.max(minItems, fixed.length === 0 ? 1 : 0)
    const more = Array.from({ length: wanted - fixed.length }, (_, index) =>
      this.value(items, index),
    )
    return [...fixed, ...more].filter((value) => value !== undefined)
  }
}

function isNullable({ nullable, type }: Schema): boolean {
  return nullable === true || ([type] as unknown[]).flat().includes('null')
}

function isNull({ type }: Schema): boolean {
  return type === 'null'
}

/** A schema that requires the discriminator value of `chosen`. Undefined if it has none. */
function tagSchema(
  { name, choices }: Discriminator,
  chosen: Schema,
  tags: Tags,
): Schema | undefined {
  const values = choices.find(({ alternative }) => alternative === chosen)?.values
  if (values === undefined) return undefined
  const value = values.includes(tags[name]) ? tags[name] : values[0]
  return { properties: { [name]: { const: value } }, required: [name] }
}

function typeOf(schema: Schema): string {
  const types = ([schema.type] as unknown[]).flat().filter((type) => type !== undefined)
  const [type] = types.filter((name) => name !== 'null')
  if (typeof type === 'string') return type
  if (types.includes('null')) return 'null'
  if (schema.properties ?? schema.required ?? schema.additionalProperties) return 'object'
  if (schema.items ?? schema.prefixItems) return 'array'
  return schema.minimum !== undefined || schema.maximum !== undefined ? 'number' : 'string'
}

function ofNumber(schema: Schema, index: number): number {
  const { minimum, maximum, exclusiveMinimum, multipleOf } = schema as Record<string, unknown>
  const above = typeof exclusiveMinimum === 'number' ? exclusiveMinimum + 1 : undefined
  const least = exclusiveMinimum === true ? Number(minimum) + 1 : Number(minimum ?? above ?? 1)
  const value = Math.min(least + index, Number(maximum ?? Number.MAX_SAFE_INTEGER))
  const step = Number(multipleOf ?? 0)
  return step > 0 ? Math.ceil(value / step) * step : value
}

function ofText({ format, pattern, minLength = 0, maxLength }: Schema, index: number): string {
  if (pattern !== undefined) {
    const text = textOfPattern(pattern)
    if (text !== undefined) return text
  }
  const ofFormat = FORMATS[format ?? '']
  if (ofFormat !== undefined && index === 0) return ofFormat
  return (index === 0 ? 'text' : `text${index}`).padEnd(minLength, 'x').slice(0, maxLength)
}
