/** Builds the visits that the handlers of pages get. */
import type { Context } from 'koa'
import { toNetwork } from '../../auth/rate-limit.ts'
import { operations } from '../../generated/operations.ts'
import { RecordChanged } from '../../operations/etag.ts'
import { execute } from '../../operations/execute.ts'
import { assertStorable } from '../../operations/storable.ts'
import { storeUpload } from '../../operations/upload.ts'
import { validate } from '../../operations/validate.ts'
import { insertAuditEntry } from '../../records/audit-log.ts'
import { accountTransaction, readScope } from '../../records/database/scope.ts'
import type { SignedIn } from '../../records/sessions.ts'
import { findUser } from '../../records/users.ts'
import { AlreadyCreated, throwFormError, toStoredForm } from './idempotent-form.ts'
import type { Access, GuestVisit, Route, Visit } from './page.ts'
import { readPosition } from './position.ts'
import type { ConsoleServices } from './services.ts'
import type { Sessions } from './session.ts'
import type { Throttles } from './throttles.ts'

interface Request {
  ctx: Context
  form: URLSearchParams
  sessions: Sessions
  throttles: Throttles
}

export function newGuestVisit(
  { db, config, log, now }: ConsoleServices,
  { ctx, form, sessions, throttles }: Request,
): GuestVisit {
  return {
    params: ctx.params,
    query: new URLSearchParams(ctx.querystring),
    form,
    now: now(),
    ip: ctx.ip,
    network: toNetwork(ctx.ip),
    db,
    config,
    log,
    ctx,
    sessions,
    throttles,
  }
}

export function newVisit(
  { checkResponse, keysInUse, quotas, config, now: clock }: ConsoleServices,
  visit: GuestVisit,
  { user, account, session }: SignedIn,
  { access, mayLag }: Extract<Route, { access: Access }>,
): Visit {
  const { ctx, db, now, ip } = visit
  const { requestId } = ctx.state
  const reader = mayLag && db.standby ? db.standby.readerAfter(readPosition(ctx)) : db.read
  const { finance } = user.permissions
  const caller = { accountId: account.id, userId: user.id, finance }
  return {
    ...visit,
    user,
    account,
    session,
    scope: readScope(db, account.id, reader),
    async change(work) {
      const result = await accountTransaction(db, account.id, async (scope) => {
        // No other transaction can change the locked user's permissions until the commit.
        const current = await findUser(scope, user.id, { forUpdate: true })
        if (current?.status !== 'active' || !access(current, ctx.params)) ctx.throw(404)
        return work(scope)
      })
      ctx.state.hasChanged = true
      return result
    },
    audit: (scope, action, target, details) =>
      insertAuditEntry(scope, { user, action, target, details, ip, requestId }, now),
    storeFile: (file) => storeUpload({ db, quotas }, account.id, file),
    async call(id, { updatedAt, idempotency, ...raw }) {
      assertStorable(raw.query)
      assertStorable(raw.body)
      const services = { db, now: clock, checkResponse, keysInUse, quotas, config }
      const executed = execute(services, id, {
        input: validate(id, raw),
        caller,
        ip,
        requestId,
        isHead: ctx.method === 'HEAD',
        reader,
        traceparent: ctx.state.traceparent,
        assertMatch(current) {
          const isChanged = (current as { updated_at?: string }).updated_at !== updatedAt
          if (updatedAt !== undefined && isChanged) throw new RecordChanged()
        },
        ...(idempotency && { idempotency, respond: toStoredForm }),
      })
      const outcome = await executed.catch(throwFormError)
      ctx.state.hasChanged ||= operations[id].access === 'write'
      if (outcome.earlierResponse) throw new AlreadyCreated(outcome.earlierResponse.body)
      return outcome.result
    },
  }
}
