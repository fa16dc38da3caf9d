/** The session cookie and the user it belongs to. */
import type { Context } from 'koa'
import { hashOfToken, startSession } from '../../auth/session.ts'
import type { Db } from '../../records/database/open.ts'
import { accountScope, accountTransaction, type WriteScope } from '../../records/database/scope.ts'
import {
  deleteSession,
  findSignedIn,
  type SignedIn,
  updateLastSeen,
} from '../../records/sessions.ts'
import { DAY_MS } from '../../records/time-units.ts'
import type { User } from '../../records/users.ts'
import type { ConsoleServices } from './services.ts'

/** Whether clients use TLS. The public URL tells, because TLS may end at a proxy. */
export const hasTls = ({ baseUrl }: ConsoleServices['config']): boolean =>
  baseUrl.startsWith('https:')

const COOKIE_LIFETIME_MS = 30 * DAY_MS

export interface Sessions {
  /** The signed-in user. Undefined for guests. Also stores the time of this request in the session,
   *  at most once a minute. */
  find(ctx: Context): Promise<SignedIn | undefined>
  /** Starts a session for `user`, and then ends the session of the request, if it has one.
   *  `beforeStart` runs first, in the transaction of the start. If it throws, no session starts. */
  start(
    ctx: Context,
    user: Pick<User, 'id' | 'accountId'>,
    beforeStart: (scope: WriteScope) => Promise<void>,
  ): Promise<void>
  end(ctx: Context): Promise<void>
}

export function newSessions({ db, config, now }: ConsoleServices): Sessions {
  // The prefix __Host- keeps other hosts of the domain from setting the cookie.
  const cookie = hasTls(config) ? '__Host-muster-session' : 'muster-session'
  const setCookie = (ctx: Context, token: string | null): void => {
    ctx.cookies.set(cookie, token, {
      httpOnly: true,
      sameSite: 'lax',
      path: '/',
      maxAge: COOKIE_LIFETIME_MS,
    })
  }
  return {
    async find(ctx) {
      const tokenHash = hashOfToken(ctx.cookies.get(cookie) ?? '')
      if (!tokenHash) return undefined
      const visitor = await findSignedIn(db.read, tokenHash, now())
      if (visitor) await updateLastSeen(db, visitor.session, now())
      return visitor
    },
    async start(ctx, { id, accountId }, beforeStart) {
      const device = { userId: id, ip: ctx.ip, userAgent: ctx.get('User-Agent') }
      const newSession = await accountTransaction(db, accountId, async (scope) => {
        await beforeStart(scope)
        return startSession(scope, device, now())
      })
      await deleteCurrentSession(db, ctx)
      ctx.state.startedSessionId = newSession.id
      setCookie(ctx, newSession.token)
    },
    async end(ctx) {
      await deleteCurrentSession(db, ctx)
      setCookie(ctx, null)
    },
  }
}

async function deleteCurrentSession(db: Db, ctx: Context): Promise<void> {
  const visitor: SignedIn | undefined = ctx.state.visitor
  if (!visitor) return
  const scope = accountScope({ dialect: db.dialect, sql: db.write }, visitor.account.id)
  await deleteSession(scope, visitor.user.id, visitor.session.id)
  ctx.state.visitor = undefined
}
