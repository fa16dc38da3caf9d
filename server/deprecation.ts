import type { OperationRow } from '../generated/operations.ts'

/** The headers of every response of a deprecated operation: `Deprecation` (RFC 9745), since when it
 *  is deprecated, and `Sunset` (RFC 8594), from when on it may be removed. Other operations have
 *  none. */
export function deprecationHeaders({
  deprecation,
}: Pick<OperationRow, 'deprecation'>): Record<string, string> {
  if (deprecation === null) return {}
  const { since, sunset } = deprecation
  return {
    Deprecation: `@${startOfDay(since).getTime() / 1000}`,
    ...(sunset === null ? {} : { Sunset: startOfDay(sunset).toUTCString() }),
  }
}

function startOfDay(day: string): Date {
  return new Date(`${day}T00:00:00Z`)
}
