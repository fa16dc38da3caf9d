/** Limits the requests of each user that this node works on at once. Further requests wait for
 *  their turn. Each user has a queue, so users do not wait for each other. */
import type { ServerResponse } from 'node:http'
import type { Context } from './context.ts'

const MAX_WAIT_MS = 2_000
/** The most requests of one user that wait. Nothing is read of their bodies meanwhile. */
const MAX_WAITING = 100
/** Most requests take less than this. */
const RETRY_AFTER_SECONDS = 1

interface UserRequests {
  inProgress: number
  /** Oldest first. Each call begins a request. */
  waiting: Set<() => void>
}

/** Returns middleware that serves requests of a user above the limit when earlier ones have ended,
 *  and throws 429 for those whose turn does not come in time. A request counts until its response
 *  has been sent. A request for a file counts only until the download begins. */
export function limitInFlight(
  limit: number,
): (ctx: Context, serve: () => Promise<void>) => Promise<void> {
  const users = new Map<string, UserRequests>()

  async function enter(userId: string, response: ServerResponse): Promise<boolean> {
    const user = users.get(userId) ?? { inProgress: 0, waiting: new Set() }
    users.set(userId, user)
    if (user.inProgress >= limit) return waitForTurn(user.waiting, response)
    user.inProgress++
    return true
  }

  function leave(userId: string): void {
    const user = users.get(userId)
    if (user === undefined) return
    const [next] = user.waiting
    // The next request takes the place, so the number in progress does not change.
    if (next === undefined) user.inProgress--
    else next()
    if (user.inProgress === 0) users.delete(userId)
  }

  return async (ctx, serve) => {
    const userId = ctx.state.principal?.userId
    if (userId === undefined) return serve()
    if (!(await enter(userId, ctx.res))) throwTooMany(ctx, limit)
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

/** Returns false after `MAX_WAIT_MS`, when the client has disconnected, and at once when too many
 *  requests wait. */
async function waitForTurn(waiting: Set<() => void>, response: ServerResponse): Promise<boolean> {
  if (waiting.size >= MAX_WAITING) return false
  return new Promise((resolve) => {
    const end = (hasTurn: boolean): void => {
      clearTimeout(timer)
      response.off('close', giveUp)
      waiting.delete(begin)
      resolve(hasTurn)
    }
    const begin = (): void => end(true)
    const giveUp = (): void => end(false)
    const timer = setTimeout(giveUp, MAX_WAIT_MS)
    response.once('close', giveUp)
    waiting.add(begin)
  })
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
