/** The entry of a resource in test/resources.ts: what the tests of all resources create, sort and filter. */
import { literal } from '../typescript-text.ts'
import type { Field } from './fields.ts'
import { fieldOf, type Resource } from './resource.ts'

/** Two records for each minute: at least three minutes, so that filters by time divide them. */
const SEEDS = [0, 1, 0, 2, 1, 0]
/** Records without a value in the nullable fields. */
const SEEDS_WITHOUT_VALUE = [2, 5]
/** The record that an update changes. */
const CHANGED_SEED = 1

type Body = Record<string, unknown>

export function writeFixture(resource: Resource): string {
  const example = resource.create.body.example as Body
  const seeds = SEEDS.map((variant, index) => seedOf(resource, example, variant, index))
  const change = changeOf(resource)
  const cases = resource.filters.map(
    (name) => `      ${name}: ${writeCases(resource, name, seeds)},`,
  )
  return `  ${resource.type}: {
    newBody: () => (${literal(example)}),
    seed: () => ${literal(seeds)},
${change === undefined ? '' : `    changes: [[${CHANGED_SEED}, ${literal(change)}]],\n`}    filterCases: {
${cases.join('\n')}
    },
  },
`
}

/** The required fields, and those of filters and sorts with other values. */
function seedOf(
  { fields, filters, sorts }: Resource,
  example: Body,
  variant: number,
  index: number,
): Body {
  const varied = fields.filter(({ name }) => [...filters.map(fieldOf), ...sorts].includes(name))
  const values = varied.flatMap((field): [string, unknown][] => {
    if (field.creation === undefined) return []
    const isEmpty = field.creation.nullable === true && SEEDS_WITHOUT_VALUE.includes(index)
    return [[field.name, isEmpty ? null : vary(field, example[field.name], variant)]]
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
  if (options) return options[variant % options.length]
  if (kind === 'time')
    return new Date(Date.parse(String(value ?? START)) + variant * HOUR_MS).toISOString()
  if (kind === 'text') {
    if (variant === 0 && value !== undefined && value !== null) return value
    const text = String(value ?? 'Text').slice(
      0,
      (creation.maxLength ?? Number.POSITIVE_INFINITY) - 2,
    )
    return variant === 0 ? text : `${text} ${variant}`
  }
  const number = Number(value ?? creation.minimum ?? 1)
  return number + variant <= (creation.maximum ?? Number.POSITIVE_INFINITY)
    ? number + variant
    : number - variant
}

/** For the first filter whose value only an update can set. */
function changeOf({ fields, filters }: Resource): Body | undefined {
  const field = fields.find(
    ({ name, creation, change }) => filters.includes(name) && !creation && change,
  )
  return field && { [field.name]: field.options?.at(-1) ?? vary(field, undefined, 1) }
}

/** Filters by fields that neither a create request nor an update sets: a person writes their cases. */
export function filtersWithoutCases({ fields, filters }: Resource): string[] {
  return filters.filter((filter) => {
    const field = fields.find(({ name }) => name === fieldOf(filter))
    return field !== undefined && !field.creation && !field.change
  })
}

function writeCases(resource: Resource, filter: string, seeds: Body[]): string {
  if (filtersWithoutCases(resource).includes(filter)) return '[]'
  const time = /_(after|before)$/.exec(filter)?.[1]
  if (time) return writeTimeCase(fieldOf(filter), time === 'after' ? '>' : '<', seeds)
  const value = changeOf(resource)?.[filter] ?? seeds[CHANGED_SEED]?.[filter]
  return `[[${literal(encodeURIComponent(String(value)))}, ({ ${filter} }) => ${filter} === ${literal(value)}]]`
}

function writeTimeCase(field: string, comparison: string, seeds: Body[]): string {
  const value = seeds[CHANGED_SEED]?.[field]
  const limit = typeof value === 'string' ? literal(value) : 'at(1)'
  return `[[${limit}, ({ ${field} }) => ${field} !== null && ${field} ${comparison} ${limit}]]`
}
