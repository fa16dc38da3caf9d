import type { Scope } from '../database/scope.ts'
import { select } from '../database/statements.ts'
import { REQUESTS_PER_MINUTE } from '../quotas.ts'
import { MINUTE_MS } from '../time-units.ts'
import { bucketSql, findSearchableStart } from './traffic.ts'

export interface RateLimitUse {
  user: { id: string; fullName: string }
  /** The rate limit that an operator has set. Null: the default applies. */
  requestsPerMinute: number | null
  /** In the busiest minute of the last hour. */
  peakRequests: number
  /** Responses with 429 in the last hour. */
  refusedRequests: number
}

/** The users with the most requests in one minute of the last hour. If the hour has too many
 *  requests, only its newest part counts: see `findSearchableStart`. */
export async function listRateLimitUse(
  scope: Scope,
  now: Date,
  limit: number,
): Promise<RateLimitUse[]> {
  const hour = { from: now.getTime() - (now.getTime() % MINUTE_MS) - 59 * MINUTE_MS, until: null }
  const from = await findSearchableStart(scope, hour)
  const rows = await select<{
    user_id: string
    full_name: string | null
    requests_per_minute: number | null
    busiest: number
    refused: number
  }>(
    scope.sql,
    `with refused as materialized (
       select id as refused_id from request_log
       where account_id = ? and created_at >= ? and status = 429
     )
     select busy.user_id, users.full_name, ${REQUESTS_PER_MINUTE} as requests_per_minute,
       busy.busiest, busy.refused
     from (
       select user_id, max(requests) as busiest, sum(refused) as refused
       from (
         select user_id, minute, sum(requests) as requests,
           sum(case when status = 429 then requests else 0 end) as refused
         from (
           select user_id, ${bucketSql('created_at')} as minute, status, 1 as requests
           from request_log
           where account_id = ? and created_at >= ?
           union all
           select user_id, ${bucketSql('created_at')}, status, repeats
           from refused join request_log on account_id = ? and id = refused_id
           where repeats > 0
         ) as logged
         group by user_id, minute
       ) as minutes
       group by user_id
       order by 2 desc, 1
       limit ?
     ) as busy
     left join users on users.account_id = ? and users.id = busy.user_id
     order by busy.busiest desc, busy.user_id`,
    // The second part of the union counts requests with 429 that the log has only in `repeats`.
    [
      ...[scope.accountId, from],
      ...[from, MINUTE_MS, scope.accountId, from],
      ...[from, MINUTE_MS, scope.accountId],
      ...[limit, scope.accountId],
    ],
  )
  return rows.map((row) => ({
    user: { id: row.user_id, fullName: row.full_name ?? 'A former user' },
    requestsPerMinute: row.requests_per_minute,
    peakRequests: Number(row.busiest),
    refusedRequests: Number(row.refused),
  }))
}
