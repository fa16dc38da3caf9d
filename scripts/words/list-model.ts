/** Computes what a list must return, from all records of the list. */
import { type Filter, type ListWords, readSort } from './lists.ts'
import { readField, readPointer } from './read.ts'

/** The records that match the filter with one of the values. */
export function applyFilter(records: unknown[], filter: Filter, values: string[]): unknown[] {
  return records.filter((record) =>
    filter.fields.some((field) =>
      values.some((value) => matches(filter, readField(record, field), value)),
    ),
  )
}

function matches(filter: Filter, field: unknown, value: string): boolean {
  const { match, ignore_case, without } = filter
  if (field === null || field === undefined) return value === without
  const fold = (text: unknown): string => (ignore_case ? String(text).toLowerCase() : String(text))
  switch (match) {
    case 'equals':
      return fold(field) === fold(value)
    case 'contains':
      return fold(field).includes(fold(value))
    case 'has':
      return (field as unknown[]).some((entry) => fold(entry) === fold(value))
    case 'after':
      return Date.parse(String(field)) > Date.parse(value)
    case 'from':
      return Date.parse(String(field)) >= Date.parse(value)
    case 'before':
      return Date.parse(String(field)) < Date.parse(value)
  }
}

/** The records in the order of these options of `sort`. */
export function applySort(
  records: unknown[],
  words: ListWords['sort'],
  options: string[],
): unknown[] {
  return records.toSorted(recordOrder(words, options))
}

/** Compares two records in the order of these options of `sort`. */
export function recordOrder(
  words: ListWords['sort'],
  options: string[],
): (a: unknown, b: unknown) => number {
  const { nulls, ties, ties_follow } = words
  const sorts = options.map((option) => readSort(option, words))
  const isReversed = ties_follow === 'last' && sorts.at(-1)?.isDescending
  return (a, b) => {
    for (const { field, isDescending } of sorts) {
      const order = compare(readField(a, field), readField(b, field), isDescending, nulls)
      if (order !== 0) return order
    }
    const order = compareValues(readPointer(a, ties), readPointer(b, ties))
    return isReversed ? -order : order
  }
}

function compare(a: unknown, b: unknown, isDescending: boolean, nulls: 'first' | 'last'): number {
  const [isNullA, isNullB] = [a ?? null, b ?? null].map((value) => value === null)
  if (isNullA || isNullB) {
    const order = Number(isNullA) - Number(isNullB)
    return nulls === 'last' ? order : -order
  }
  const order = compareValues(a, b)
  return isDescending ? -order : order
}

/** Compares numbers by value, and other values as text by code point: by the bytes of UTF-8. */
function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)))
}
