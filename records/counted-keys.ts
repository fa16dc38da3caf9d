/** API keys and the rate limits of their owners, in one statement. PostgreSQL only. */
import {
  type AcceptedKey,
  FIND_PRINCIPAL,
  keyStatusFromRow,
  type PrincipalRow,
  type RejectedKey,
} from './api-keys.ts'
import type { Db } from './database/open.ts'
import { select } from './database/statements.ts'
import {
  type CountedRow,
  countPointsSql,
  type RateLimitWindow,
  windowFromRow,
} from './rate-limits.ts'

/** `window` already includes the counted requests. */
type CountedKeyStatus = (AcceptedKey & { window: RateLimitWindow }) | RejectedKey

interface CountedRequests {
  /** The name of the rate limit. */
  name: string
  windowSeconds: number
  /** Each counts as one point. */
  requests: number
}

/** Finds the owner of a key and counts requests against the owner's rate limit, unless the key is
 *  rejected. Undefined: there is no such key. No result is cached: see `findPrincipal`. */
export async function findCountedPrincipal(
  db: Db,
  tokenHash: string,
  { name, windowSeconds, requests }: CountedRequests,
): Promise<CountedKeyStatus | undefined> {
  // The key of the rate limit, and the points to count. No row for a rejected API key.
  const keyAndPoints = `select ?::text || ':' || "userId", ?::integer from principal
     where "isActive" and not "isSuspended"`
  const [row] = await select<PrincipalRow & CountedRow>(
    db.read,
    `with principal as (${FIND_PRINCIPAL}), counted as (${countPointsSql(keyAndPoints, windowSeconds * 1_000)})
     select principal.*, counted.points, counted.ms_left from principal left join counted on true`,
    [tokenHash, name, requests],
    `find_counted_principal_${windowSeconds}`,
  )
  if (!row) return undefined
  const { points, ms_left, ...principal } = row
  const status = keyStatusFromRow(principal)
  return 'rejected' in status ? status : { ...status, window: windowFromRow({ points, ms_left }) }
}
