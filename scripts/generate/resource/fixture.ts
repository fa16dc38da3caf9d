/** The entry of a resource in test/resources.ts. The tests that run for every resource use it. Its
 *  seeds are the records that these tests create, sort and filter. */
import type { MediaType } from '../../model/operations.ts'
import { isNotBlankPattern, type Schema, TEXT_PATTERN } from '../../model/schema.ts'
import { isObject } from '../../model/source.ts'
import { literal } from '../typescript-text.ts'
import { type Field, MANAGED_FIELDS } from './fields.ts'
import { boundOf, fieldOf } from './query.ts'
import type { Resource } from './resource.ts'

/** The variant of each seed. The fields of filters and sorts differ between variants. There are six
 *  seeds, because the tests of filters by time need records from three different minutes, and
 *  `seedAll` in test/resources.ts creates two seeds in each minute. */
const SEED_VARIANTS = [0, 1, 0, 2, 1, 0]
/** The indexes of the seeds that have null in the nullable fields of filters and sorts. */
const SEEDS_WITHOUT_VALUE = [2, 5]
/** The index of the seed that the update in `changes` changes (`changeOf`). The test cases of the
 *  filters use the values of this seed. */
const CHANGED_SEED = 1

type Body = Record<string, unknown>

/** The ID of a seeded record of another resource. */
interface SeededId {
  type: string
  /** The index of the record among the seeds of its resource. */
  index: number
}

export function renderFixture(resource: Resource): string {
  const { type } = resource
  const change = changeOf(resource)
  const types = seededFields(resource).flatMap(({ reference }) => reference?.type ?? [])
  const seeded = [...new Set(types)].map((name) => `${name} = []`)
  const cases = filtersOf(resource).map((name) => `      ${name}: ${renderCases(resource, name)},`)
  return `  ${type}: {
    newBody: ${renderNewBody(resource)},
    seed: (${seeded.length > 0 ? `{ ${seeded.join(', ')} }` : ''}) => [${seedsOf(resource).map(renderSeed).join(', ')}],
${change === undefined ? '' : `    changes: [[${CHANGED_SEED}, ${literal(change)}]],\n`}    filterCases: {
${cases.join('\n')}
    },
  },
`
}

function filtersOf({ filters, search }: Resource): string[] {
  return search.length > 0 ? [...filters, 'search'] : filters
}

/** The field whose value decides whether a seed matches the filter. */
function decidingField({ search }: Resource, filter: string): string {
  return filter === 'search' ? (search[0] ?? '') : fieldOf(filter)
}

/** The code of a create request's body: the example of the contract, but its references are the IDs
 *  of new records. */
function renderNewBody({ fields, create: { body } }: Resource): string {
  const lines = Object.entries(body.example as Body).map(
    ([name, value]) => renderNewId(fields, body, name) ?? `${name}: ${literal(value)}`,
  )
  const creates = lines.some((line) => line.includes('await newRecord('))
  return `${creates ? 'async (client)' : '()'} => ({ ${lines.join(', ')} })`
}

/** The code of the property `name` in a body. It creates the record to which the field refers, and
 *  uses its ID. Undefined if the field is no reference, or if it is null in the example. */
export function renderNewId(
  fields: Field[],
  { example }: MediaType,
  name: string,
): string | undefined {
  const reference = fields.find((field) => field.name === name)?.reference
  if (!reference || (example as Body)[name] === null) return undefined
  return `${name}: (await newRecord(client, '${reference.type}')).id`
}

function seedsOf(resource: Resource): Body[] {
  return SEED_VARIANTS.map((variant, index) =>
    seedOf(resource, variant, SEEDS_WITHOUT_VALUE.includes(index)),
  )
}

/** The fields of create requests that are required, or that a filter, the search or a sort uses. */
function seededFields(resource: Resource): Field[] {
  const listed = listedFields(resource)
  return resource.fields.filter(
    ({ name, creation, isRequired }) => creation && (isRequired || listed.includes(name)),
  )
}

function listedFields(resource: Resource): string[] {
  const filtered = filtersOf(resource).map((filter) => decidingField(resource, filter))
  return [...filtered, ...resource.sorts]
}

function seedOf(resource: Resource, variant: number, hasNulls: boolean): Body {
  const example = resource.create.body.example as Body
  const listed = listedFields(resource)
  return Object.fromEntries(
    seededFields(resource).map((field) => {
      const { name, reference, creation } = field
      if (listed.includes(name) && hasNulls && creation?.nullable) return [name, null]
      if (reference) return [name, { type: reference.type, index: variant % 2 }]
      return [name, listed.includes(name) ? vary(field, example[name], variant) : example[name]]
    }),
  )
}

function renderSeed(seed: Body): string {
  const entries = Object.entries(seed).map(
    ([name, value]) => `${name}: ${isSeededId(value) ? renderSeededId(value) : literal(value)}`,
  )
  return `{ ${entries.join(', ')} }`
}

function isSeededId(value: unknown): value is SeededId {
  return isObject(value) && typeof value.type === 'string' && typeof value.index === 'number'
}

function renderSeededId({ type, index }: SeededId): string {
  return `${type}[${index}].id`
}

const HOUR_MS = 3_600_000
const START = '2026-03-02T09:00:00.000Z'

/** The value of the field in a variant. An enumeration takes its options in turn. Any other field
 *  starts from `value`, its value in the example. */
function vary({ kind, options, creation = {} }: Field, value: unknown, variant: number): unknown {
  const values = creation.enum ?? options
  if (values) return values[variant % values.length]
  if (kind === 'text') return varyText(creation, value, variant)
  if (kind === 'time')
    return new Date(Date.parse(String(value ?? START)) + variant * HOUR_MS).toISOString()
  const number = Number(value ?? creation.minimum ?? 1)
  return number + variant <= (creation.maximum ?? Number.POSITIVE_INFINITY)
    ? number + variant
    : number - variant
}

/** Varies emails and plain text. Text with another format, or with a pattern that `isPlainText`
 *  does not know, stays the same. */
function varyText(schema: Schema, value: unknown, variant: number): unknown {
  if (variant === 0 && value !== undefined && value !== null) return value
  if (schema.format === 'email') return `${variant}${value ?? '@example.com'}`
  if (schema.format !== undefined || !isPlainText(schema)) return value
  const text = String(value ?? 'Text').slice(0, (schema.maxLength ?? Number.POSITIVE_INFINITY) - 2)
  return `${text} ${variant}`
}

function isPlainText({ pattern }: Schema): boolean {
  return pattern === undefined || pattern === TEXT_PATTERN || isNotBlankPattern(pattern)
}

/** The body of the update. It sets the first field that has a filter, is no reference, and is set
 *  by updates only. Undefined if there is no such field. */
function changeOf({ fields, filters }: Resource): Body | undefined {
  const isSetByUpdateOnly = ({ creation, change }: Field): boolean => !creation && !!change
  const field = fields.find(
    (candidate) =>
      filters.includes(candidate.name) && isSetByUpdateOnly(candidate) && !candidate.reference,
  )
  return field && { [field.name]: field.options?.at(-1) ?? vary(field, undefined, 1) }
}

/** Filters whose cases a person must write: all seeds have the same value of the field, and the
 *  update does not set it. Fields that the service sets always differ. */
export function filtersWithoutCases(resource: Resource): string[] {
  const seeds = seedsOf(resource)
  const change = changeOf(resource) ?? {}
  return filtersOf(resource).filter((filter) => {
    const name = decidingField(resource, filter)
    const values = new Set(seeds.map((seed) => JSON.stringify(seed[name])))
    const isVaried = MANAGED_FIELDS.includes(name) || name in change || values.size > 1
    return !isVaried
  })
}

function renderCases(resource: Resource, filter: string): string {
  if (filtersWithoutCases(resource).includes(filter)) return '[]'
  const seed = seedsOf(resource)[CHANGED_SEED]
  const bound = boundOf(filter)
  if (bound) return renderTimeCase(fieldOf(filter), bound.operator, seed)
  const field = decidingField(resource, filter)
  const value = changeOf(resource)?.[field] ?? seed?.[field]
  if (isSeededId(value)) return renderReferenceCase(field, value)
  const text = filter === 'search' ? String(value).toUpperCase() : String(value)
  return `[[${literal(encodeURIComponent(text))}, ({ ${field} }) => ${field} === ${literal(value)}]]`
}

function renderReferenceCase(field: string, value: SeededId): string {
  const id = renderSeededId(value)
  const seeded = `{ ${value.type} = [] }`
  return `[[(${seeded}) => ${id}, ({ ${field} }, ${seeded}) => ${field} === ${id}]]`
}

function renderTimeCase(field: string, comparison: string, seed: Body | undefined): string {
  const value = seed?.[field]
  const limit = typeof value === 'string' ? literal(value) : 'at(1)'
  return `[[${limit}, ({ ${field} }) => ${field} !== null && ${field} ${comparison} ${limit}]]`
}
