/** Chooses filter values for the test of a list. */
import type { Schema } from '../../model/schema.ts'
import type { FilterParameter } from '../../words/lists.ts'
import { readField } from '../../words/read.ts'
import { isValid } from '../values/validity.ts'

const MAX_VALUES_OF_FIELD = 4
const MAX_OPTIONS = 6

/** Values to filter by. Each entry has the values of one request. Most entries match some of the
 *  records, and some match none. */
export function chooseFilterValues(
  { fields, ignore_case = false }: FilterParameter,
  schema: Schema,
  records: unknown[],
): string[][] {
  const stored = fields.flatMap((field) => {
    const values = records.flatMap((record) => readField(record, field) ?? [])
    return [...new Set(values.map(String))].slice(0, MAX_VALUES_OF_FIELD)
  })
  if (schema.type === 'array') return chooseOptions(schema.items ?? {}, stored)
  const whole = ignore_case ? stored.map(swapCase) : stored
  // A part of an ID or of a time is no valid value.
  const parts = schema.format === undefined ? stored.map((text) => [...text].slice(1).join('')) : []
  return [...whole, ...parts]
    .filter((value) => value !== '' && isValid(schema, value))
    .map((value) => [value])
}

/** Each of the first options alone, and two stored values together. Without an enumeration, the
 *  stored values are the options. */
function chooseOptions(items: Schema, stored: string[]): string[][] {
  const options = (items.enum ?? stored).map(String)
  const [first, second] = stored.filter((value) => isValid(items, value))
  return [
    ...options.slice(0, MAX_OPTIONS).map((option) => [option]),
    ...(first && second ? [[first, second]] : []),
  ]
}

/** ASCII letters only. */
function swapCase(text: string): string {
  return text.replace(/[a-z]+|[A-Z]+/g, (letters) =>
    letters === letters.toLowerCase() ? letters.toUpperCase() : letters.toLowerCase(),
  )
}
