/** The entry of a resource in test/resources.ts: what the tests of all resources create, sort and filter. */
import { isNotBlankPattern, type Schema, TEXT_PATTERN } from '../../model/schema.ts'
import { literal } from '../typescript-text.ts'
import { type Field, MANAGED_FIELDS } from './fields.ts'
import { fieldOf, type Resource } from './resource.ts'

/** Two records for each minute: at least three minutes, so that filters by time divide them. */
const SEEDS = [0, 1, 0, 2, 1, 0]
/** Records without a value in the nullable fields. */
const SEEDS_WITHOUT_VALUE = [2, 5]
/** The record that an update changes. */
const CHANGED_SEED = 1

type Body = Record<string, unknown>

export function writeFixture(resource: Resource): string {
  const change = changeOf(resource)
  const cases = resource.filters.map((name) => `      ${name}: ${writeCases(resource, name)},`)
  return `  ${resource.type}: {
    newBody: () => (${literal(resource.create.body.example)}),
    seed: () => ${literal(seedsOf(resource))},
${change === undefined ? '' : `    changes: [[${CHANGED_SEED}, ${literal(change)}]],\n`}    filterCases: {
${cases.join('\n')}
    },
  },
`
}

function seedsOf(resource: Resource): Body[] {
  return SEEDS.map((variant, index) =>
    seedOf(resource, variant, SEEDS_WITHOUT_VALUE.includes(index)),
  )
}

/** The required fields, and those of filters and sorts with other values. */
function seedOf(
  { fields, filters, sorts, create }: Resource,
  variant: number,
  isEmpty: boolean,
): Body {
  const example = create.body.example as Body
  const varied = fields.filter(({ name }) => [...filters.map(fieldOf), ...sorts].includes(name))
  const values = varied.flatMap((field): [string, unknown][] => {
    if (field.creation === undefined) return []
    const isNull = isEmpty && field.creation.nullable === true
    return [[field.name, isNull ? null : vary(field, example[field.name], variant)]]
  })
  const required = fields.filter(({ isRequired }) => isRequired)
  return {
    ...Object.fromEntries(required.map(({ name }) => [name, example[name]])),
    ...Object.fromEntries(values),
  }
}

const HOUR_MS = 3_600_000
const START = '2026-03-02T09:00:00.000Z'

/** The value of a variant: 0 is the example's. */
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

/** Text of a format or pattern stays the example's, except for an email. */
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

/** For the first filter whose value only an update can set. */
function changeOf({ fields, filters }: Resource): Body | undefined {
  const field = fields.find(
    ({ name, creation, change }) => filters.includes(name) && !creation && change,
  )
  return field && { [field.name]: field.options?.at(-1) ?? vary(field, undefined, 1) }
}

/** Filters that need cases by hand: neither an update nor different seeds make one record match and another not. */
export function filtersWithoutCases(resource: Resource): string[] {
  const seeds = seedsOf(resource)
  const change = changeOf(resource) ?? {}
  return resource.filters.filter((filter) => {
    const name = fieldOf(filter)
    const isManaged = MANAGED_FIELDS.includes(name)
    return !isManaged && !(name in change) && new Set(seeds.map((seed) => seed[name])).size < 2
  })
}

function writeCases(resource: Resource, filter: string): string {
  if (filtersWithoutCases(resource).includes(filter)) return '[]'
  const seed = seedsOf(resource)[CHANGED_SEED]
  const time = /_(after|before)$/.exec(filter)?.[1]
  if (time) return writeTimeCase(fieldOf(filter), time === 'after' ? '>' : '<', seed)
  const value = changeOf(resource)?.[filter] ?? seed?.[filter]
  return `[[${literal(encodeURIComponent(String(value)))}, ({ ${filter} }) => ${filter} === ${literal(value)}]]`
}

function writeTimeCase(field: string, comparison: string, seed: Body | undefined): string {
  const value = seed?.[field]
  const limit = typeof value === 'string' ? literal(value) : 'at(1)'
  return `[[${limit}, ({ ${field} }) => ${field} !== null && ${field} ${comparison} ${limit}]]`
}
