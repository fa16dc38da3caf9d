/** Limits the requests of each user that this node works on at once. */
import type { Context } from './context.ts'

/** Most requests take less than this. */
const RETRY_AFTER_SECONDS = 1

/** Returns middleware that throws 429 for a request of a user above the limit. A request counts
 *  until its response has been sent. A request for a file counts only until the download begins. */
export function limitInFlight(
  limit: number,
): (ctx: Context, serve: () => Promise<void>) => Promise<void> {
  const counts = new Map<string, number>()

  function leave(userId: string): void {
    const others = (counts.get(userId) ?? 0) - 1
    if (others > 0) counts.set(userId, others)
    else counts.delete(userId)
  }

  return async (ctx, serve) => {
    const userId = ctx.state.principal?.userId
    if (userId === undefined) return serve()
    const others = counts.get(userId) ?? 0
    if (others >= limit) throwTooMany(ctx, limit)
    counts.set(userId, others + 1)
    let isSending = false
    try {
      await serve()
      isSending = typeof ctx.body === 'string' && !ctx.res.closed
    } finally {
      if (isSending) ctx.res.once('close', () => leave(userId))
      else leave(userId)
    }
  }
}

function throwTooMany(ctx: Context, limit: number): never {
  const requests = limit === 1 ? 'request' : 'requests'
  return ctx.throw(
    429,
    `You have ${limit} ${requests} in progress, which is the limit. ` +
      'Wait until one of them has ended.',
    { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } },
  )
}
