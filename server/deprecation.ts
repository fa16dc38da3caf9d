import type { OperationRow } from '../generated/operations.ts'

/** The headers of every response of a deprecated operation: RFC 9745 (since when) and RFC 8594
 *  (until when at least). */
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
