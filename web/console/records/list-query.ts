/** The query of a list page. Its parameters have the same names as in the API. */
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { convertParameter } from '../../../validation.ts'
import { toInstant } from './field-values.ts'

export type Pairs = [name: string, value: string][]

/** Converts a submitted filter form to an API query: drops empty and default values, joins the
 *  values of a list with commas, keeps only the last value of any other repeated parameter, and
 *  converts `datetime-local` values to ISO 8601. */
export function normalizeQuery(resource: Resource, submitted: Iterable<[string, string]>): Pairs {
  const { query }: OperationRow = operations[resource.operations.list]
  const times = new Set(
    resource.filters
      .filter(({ schema }) => schema.format === 'date-time')
      .map(({ name }) => filterParameter(name)),
  )
  const values = new Map<string, string[]>()
  for (const [name, value] of submitted)
    if (value !== '') values.set(name, [...(values.get(name) ?? []), value])
  return [...values].flatMap(([name, texts]): Pairs => {
    const type = query[name]?.type
    const value = type === 'list' ? texts.join(',') : (texts.at(-1) ?? '')
    const defaultValue = query[name]?.default
    if (defaultValue !== undefined && value === String(defaultValue)) return []
    return [[name, times.has(name) ? toInstant(value) : value]]
  })
}

/** Converts the texts to the types of the operation's parameters. */
export function convertQuery({ query }: OperationRow, pairs: Pairs): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map(([name, value]) => [name, convertParameter(value, query[name])]),
  )
}

/** Begins with `?` unless empty. Leaves brackets, commas and colons readable. */
export function queryText(pairs: Pairs): string {
  const escaped = (text: string): string =>
    encodeURIComponent(text).replace(/%(5B|5D|2C|3A)/g, decodeURIComponent)
  return pairs.length === 0
    ? ''
    : `?${pairs.map(([name, value]) => `${escaped(name)}=${escaped(value)}`).join('&')}`
}

export function queryValue(pairs: Pairs, name: string): string {
  return pairs.find(([other]) => other === name)?.[1] ?? ''
}

/** Sets a parameter, or removes it if the value is undefined. Removes the page number, because the
 *  list changes. */
export function withValue(pairs: Pairs, name: string, value: string | undefined): Pairs {
  const others = pairs.filter(([other]) => other !== name && other !== 'page[number]')
  return value === undefined ? others : [...others, [name, value]]
}

export const filterParameter = (name: string): string => `filter[${name}]`

/** The filters by name: `filter[participant_id]` → `participant_id`. */
export function filtersIn(pairs: Pairs): Record<string, string> {
  return Object.fromEntries(
    pairs.flatMap(([name, value]) => {
      const filter = /^filter\[(.+)\]$/.exec(name)?.[1]
      return filter === undefined ? [] : [[filter, value]]
    }),
  )
}
