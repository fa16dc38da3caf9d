/** Chooses filters with values for the test of a list. */
import type { Operation } from '../../../model/operations.ts'
import type { Schema } from '../../../model/schema.ts'
import { applyFilter } from '../../../words/list-model.ts'
import { type FilterParameter, listFilters } from '../../../words/lists.ts'
import { readField } from '../../../words/read.ts'
import { UNKNOWN_ID } from '../../run.ts'
import { isValid } from '../../values/validity.ts'

/** The newest records, among which are the seeds. */
const MAX_RECORDS = 12
const MAX_VALUES_OF_FIELD = 6
/** Lists have many filters by time. */
const MAX_BOUNDS = 2
const MAX_EARLIER_VALUES = 3
const MAX_OPTIONS = 8

/** A filter with values. */
export interface Filtering {
  filter: FilterParameter
  values: string[]
  apply(records: unknown[]): unknown[]
}

export function describeFiltering({ filter, values }: Filtering): string {
  return `${filter.parameter.name}: ${values.join(',')}`
}

/** The query parameter of the filter. */
export function toParameter({ filter: { parameter }, values }: Filtering): [string, unknown] {
  return [parameter.name, parameter.schema.value.type === 'array' ? values : values[0]]
}

/** Each filter of the list with several values. `earlier` are records before their updates. */
export function chooseFilterings(
  list: { operation: Operation; schemaOf(name: string): Schema | undefined },
  records: unknown[],
  earlier: unknown[],
): Filtering[] {
  return listFilters(list.operation).flatMap((filter) => {
    const schema = list.schemaOf(filter.parameter.name) ?? {}
    return chooseValues(filter, schema, records, earlier).map((values) => {
      // RFC 9562 §4: UUIDs are case-insensitive as input.
      const stored = schema.format === 'uuid' ? values.map((value) => value.toLowerCase()) : values
      return { filter, values, apply: (all) => applyFilter(all, filter, stored) }
    })
  })
}

/** The first values of each filter that fit. */
export function chooseOneEach(
  tried: Filtering[],
  fits: (one: Filtering) => boolean = () => true,
): Filtering[] {
  const byFilter = Map.groupBy(tried, ({ filter }) => filter)
  return [...byFilter.values()].flatMap((some) => some.find(fits) ?? [])
}

/** Filters that match the same record, as many as possible, and the same filters with values that
 *  do not match it. */
export function chooseTogether(records: unknown[], tried: Filtering[]) {
  const choose = (record: unknown, matches: boolean): Filtering[] =>
    chooseOneEach(tried, ({ apply }) => apply([record]).length > 0 === matches)
  return records
    .map((record) => ({ matching: choose(record, true), others: choose(record, false) }))
    .toSorted((a, b) => b.matching.length - a.matching.length)[0]
}

/** Each entry has the values of one request. The first entries match some of the records. Later
 *  ones are almost equal to a stored value, or were stored earlier. */
function chooseValues(
  filter: FilterParameter,
  schema: Schema,
  records: unknown[],
  earlier: unknown[],
): string[][] {
  const isBound = ['after', 'before', 'from'].includes(filter.match)
  const most = isBound ? MAX_BOUNDS : MAX_VALUES_OF_FIELD
  const stored = listStored(filter, records.slice(-MAX_RECORDS), most)
  const removed = listStored(filter, isBound ? [] : earlier, Number.POSITIVE_INFINITY)
    .filter((value) => !stored.includes(value))
    .slice(-MAX_EARLIER_VALUES)
  if (schema.type === 'array') return chooseOptions(schema.items ?? {}, stored, removed)
  const { ignore_case = false } = filter
  const whole = ignore_case ? stored.map(swapCase) : stored
  const values = [...whole, ...removed, ...listSimilar(schema, stored, ignore_case)]
  const valid = [...new Set(values)].filter(
    (value) => value !== '' && isValidParameter(schema, value),
  )
  return [...valid, ...(filter.without === undefined ? [] : [filter.without])].map((value) => [
    value,
  ])
}

function listStored({ fields }: FilterParameter, records: unknown[], max: number): string[] {
  return fields.flatMap((field) => {
    const values = records.flatMap((record) => readField(record, field) ?? [])
    return [...new Set(values.map(String))].slice(-max)
  })
}

/** Single options, several stored values together, and a stored value with one that no record
 *  has. Without an enumeration, the stored values are the options. */
function chooseOptions(items: Schema, stored: string[], removed: string[]): string[][] {
  const found = [...new Set(stored)].filter((value) => isValid(items, value))
  const options = [...new Set([...found, ...(items.enum ?? removed).map(String)])]
  const other = options.find((option) => !found.includes(option))
  const several = [found.slice(0, 2), found, other ? [...found.slice(0, 1), other] : []]
  return [
    ...options.slice(0, MAX_OPTIONS).map((option) => [option]),
    ...several.filter((values) => values.length > 1),
  ]
}

/** Values that are almost equal to a stored one, and wildcards of SQL. */
function listSimilar(schema: Schema, stored: string[], ignoreCase: boolean): string[] {
  const { type, format } = schema
  if (format === 'date-time')
    return stored.some((time) => SUB_MILLISECOND.test(time))
      ? []
      : stored.slice(-2).flatMap(listNearTimes)
  if (format === 'uuid') return [...stored.slice(0, 1).map((id) => id.toUpperCase()), UNKNOWN_ID]
  if (type === 'integer' || type === 'number')
    return stored.flatMap((value) => [String(Number(value) - 1), String(Number(value) + 1)])
  if (type === 'boolean') return ['true', 'false']
  if (format !== undefined) return []
  // Whether a text in another Unicode form differs in case only is not defined.
  const changes = ignoreCase ? TEXT_CHANGES : [...TEXT_CHANGES, ...FORM_CHANGES]
  const changed = changes.flatMap(
    (change) => stored.map(change).find((text) => text !== '' && !stored.includes(text)) ?? [],
  )
  return [...changed, '%', '_', '\\']
}

/** The model compares milliseconds. */
const SUB_MILLISECOND = /\.\d{4}/

/** A millisecond before and after the time, and the same time with an offset. */
function listNearTimes(time: string): string[] {
  const toTime = (millis: number): string => new Date(millis).toISOString()
  const millis = Date.parse(time)
  const twoHours = 2 * 60 * 60 * 1000
  return [toTime(millis - 1), toTime(millis + 1), toTime(millis + twoHours).replace('Z', '+02:00')]
}

const TEXT_CHANGES: ((text: string) => string)[] = [
  (text) => [...text].slice(0, -1).join(''),
  (text) => [...text].slice(1).join(''),
  swapCase,
  (text) => `${text}x`,
  (text) => `${text} `,
  (text) => ['_', ...[...text].slice(1)].join(''),
  (text) => `${[...text][0]}%`,
]
const FORM_CHANGES = [
  (text: string) => text.normalize('NFD'),
  (text: string) => text.normalize('NFC'),
]

/** ASCII letters only. */
function swapCase(text: string): string {
  return text.replace(/[a-z]+|[A-Z]+/g, (letters) =>
    letters === letters.toLowerCase() ? letters.toUpperCase() : letters.toLowerCase(),
  )
}

function isValidParameter(schema: Schema, text: string): boolean {
  if (schema.type === 'boolean') return true
  const isNumber = schema.type === 'integer' || schema.type === 'number'
  return isValid(schema, isNumber ? Number(text) : text)
}
