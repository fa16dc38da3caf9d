import { type Place, valueAt } from './source.ts'

/** The keys of a deprecated part, with days such as `2026-03-01`. */
interface DeprecationMarks {
  isDeprecated: boolean
  since: string | undefined
  sunset: string | undefined
}

/** A part is deprecated by `deprecated: true`, or by `x-deprecated-since` where the format has no
 *  `deprecated`. */
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
