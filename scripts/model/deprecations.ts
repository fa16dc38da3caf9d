/** The deprecations of operations, events and their parts. */
import { fail, type Place, valueAt } from './source.ts'

/** Days have the form `2026-03-01`. */
export interface Deprecation {
  /** The day of the deprecation. */
  since: string
  /** The earliest day of removal. Null if the document does not name one. */
  sunset: string | null
}

/** The deprecation of an operation or event. Null if it is not deprecated. Throws `ContractError`
 *  for dates without a deprecation, a deprecation without its day, and faulty days. */
export function readDeprecation(
  { source, path }: Place,
  name: string,
  isDeprecated: boolean,
): Deprecation | null {
  const readDay = (key: string): string | null => {
    const value = valueAt(source.root, [...path, key])
    if (value === undefined) return null
    if (typeof value !== 'string' || !isDay(value))
      fail(source, [...path, key], `${key} must be a day, for example '2026-03-01'`)
    return value
  }
  const [since, sunset] = [readDay('x-deprecated-since'), readDay('x-sunset')]
  if (!isDeprecated && (since ?? sunset) !== null)
    fail(source, path, `${name} has deprecation dates: add deprecated: true`)
  if (!isDeprecated) return null
  if (since === null)
    fail(source, path, `${name} is deprecated: add x-deprecated-since with the day`)
  if (sunset !== null && sunset < since)
    fail(source, [...path, 'x-sunset'], 'x-sunset must not be earlier than x-deprecated-since')
  return { since, sunset }
}

/** Whether the text is an existing day in the form `2026-03-01`. */
function isDay(text: string): boolean {
  return (
    /^\d{4}-\d{2}-\d{2}$/.test(text) && new Date(`${text}T00:00:00Z`).toJSON()?.startsWith(text)
  )
}

/** The deprecation as the document declares it. The days are not validated. */
interface DeprecationMarks {
  isDeprecated: boolean
  since: string | undefined
  sunset: string | undefined
}

/** A part is deprecated by `deprecated: true`, or by `x-deprecated-since` alone: messages of
 *  AsyncAPI have no `deprecated`. */
export function readDeprecationMarks({ source, path }: Place): DeprecationMarks {
  const read = (key: string): unknown => valueAt(source.root, [...path, key])
  return {
    isDeprecated: read('deprecated') === true || read('x-deprecated-since') !== undefined,
    since: read('x-deprecated-since') as string | undefined,
    sunset: read('x-sunset') as string | undefined,
  }
}

/** docs/versioning.md promises at least one year between deprecation and removal. */
export function earliestSunset(since: string): string {
  return `${Number(since.slice(0, 4)) + 1}${since.slice(4)}`
}
