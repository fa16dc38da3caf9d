/** The settings of the programs of this folder, and parts of their reports. */

export const url = process.env.MUSTER_URL ?? ''
export const proxyUrl = process.env.MUSTER_PROXY_URL ?? ''
export const headers = { Authorization: `Bearer ${process.env.MUSTER_API_KEY}` }

/** Two questions whose expected answers have different types. */
export const screening_questions = [
  {
    key: 'years',
    label: 'Years?',
    requirement: 'must_have' as const,
    operator: 'at_least' as const,
    expected: 5,
  },
  {
    key: 'city',
    label: 'City?',
    requirement: 'nice_to_have' as const,
    operator: 'one_of' as const,
    expected: ['Lyon', 'Paris'],
  },
]

/** The headers of a 429 that concern the rate limit. */
export function limitHeaders(headers: Headers): Record<string, string | null> {
  const names = [
    ...['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
    ...['RateLimit', 'RateLimit-Policy', 'Retry-After'],
  ]
  return Object.fromEntries(names.map((name) => [name, headers.get(name)]))
}
