/** The position of the primary after the last change of a session: see records/database/standby.ts. A cookie
 *  carries it to the node that serves the next request. */
import type { Context } from 'koa'
import type { Standby } from '../../records/database/standby.ts'

const COOKIE = 'muster-position'
/** Longer than any value of DATABASE_READ_MAX_LAG_MS. A standby that is read then has the change anyway. */
const LIFETIME_MS = 3_600_000

/** Call it after each request that may have changed something. */
export async function storePosition(ctx: Context, standby: Standby): Promise<void> {
  // A position that no standby has: the session reads the primary.
  const position = await standby.findPosition().catch(() => Number.MAX_SAFE_INTEGER)
  ctx.cookies.set(COOKIE, String(position), {
    httpOnly: true,
    sameSite: 'lax',
    path: '/console',
    maxAge: LIFETIME_MS,
  })
}

/** NaN for an invalid cookie, which no standby has reached either. */
export function readPosition(ctx: Context): number {
  return Number(ctx.cookies.get(COOKIE) ?? 0)
}
