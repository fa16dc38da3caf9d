/** The values with which the test of a list tries its filters. */
import type { Schema } from '../../model/schema.ts'
import type { FilterParameter } from '../../words/lists.ts'
import { readField } from '../../words/read.ts'
import { isValid } from '../values/validity.ts'

/** Values that match some records, and one that matches none, each as a list. */
export function chooseFilterValues(
  filter: FilterParameter,
  schema: Schema,
  records: unknown[],
): string[][] {
  const { fields, ignore_case } = filter
  const present = fields.flatMap((field) => {
    const found = records.flatMap((record) => readField(record, field) ?? [])
    return [...new Set(found.map(String))].slice(0, 4)
  })
  const isTaken = (value: string) =>
    isValid(schema.type === 'array' ? (schema.items ?? {}) : schema, value)
  if (schema.type === 'array') {
    const options = (schema.items?.enum ?? present).map(String)
    const [one, two] = present.filter(isTaken)
    return [...options.slice(0, 6).map((option) => [option]), ...(one && two ? [[one, two]] : [])]
  }
  const swap = (text: string) => (ignore_case ? swapCase(text) : text)
  // A part of an ID is no ID.
  const parts =
    schema.format === undefined ? present.map((text) => [...text].slice(1).join('')) : []
  return [...present.map(swap), ...parts]
    .filter((value) => value !== '' && isTaken(value))
    .map((value) => [value])
}

/** ASCII letters only. */
function swapCase(text: string): string {
  return text.replace(/[a-z]+|[A-Z]+/g, (letters) =>
    letters === letters.toLowerCase() ? letters.toUpperCase() : letters.toLowerCase(),
  )
}
