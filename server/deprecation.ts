import type { Operation } from '../generated/operations.ts'

/** The headers of every answer of an operation that is on its way out: RFC 9745, since when; RFC 8594, from when on it may be gone. */
export function deprecationHeaders({ deprecation }: Pick<Operation, 'deprecation'>): {
  Deprecation?: string
  Sunset?: string
} {
  if (deprecation === null) return {}
  const { since, sunset } = deprecation
  return {
    Deprecation: `@${startOf(since).getTime() / 1000}`,
    ...(sunset === null ? {} : { Sunset: startOf(sunset).toUTCString() }),
  }
}

function startOf(day: string): Date {
  return new Date(`${day}T00:00:00Z`)
}
