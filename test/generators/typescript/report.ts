/** What the programs of this folder share. */

export const url = process.env.MUSTER_URL ?? ''
export const proxyUrl = process.env.MUSTER_PROXY_URL ?? ''
export const headers = { Authorization: `Bearer ${process.env.MUSTER_API_KEY}` }

/** The headers of a 429. */
export function rateLimit(headers: Headers): Record<string, string | null> {
  const names = [
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
    'RateLimit',
    'RateLimit-Policy',
    'Retry-After',
  ]
  return Object.fromEntries(names.map((name) => [name, headers.get(name)]))
}
