/** Calls an operation's handler: for a request of the API, and for what people do to the same records in the console. */
import type { Context } from 'koa'
import type { EventData, EventType } from '../generated/asyncapi.ts'
import { handlers } from '../generated/handlers.ts'
import { type OperationId, operations } from '../generated/operations.ts'
import * as validators from '../generated/validators.js'
import type { Db } from '../records/database/open.ts'
import { accountScope, type WriteScope, writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { assertStorable } from '../server/body.ts'
import { emit, emitMany } from '../webhooks/emit.ts'
import { assertValid } from './validation.ts'

export type AnyHandler = (ctx: Context) => Promise<void>

/** What a handler that writes finds in `ctx.state` beside its input. */
export function writeState(scope: WriteScope, now: Date): object {
  return {
    scope,
    emit: (eventType: EventType, resourceId: string, data: EventData[EventType] = []) =>
      emit(scope, eventType, resourceId, data, now),
    emitMany: (eventType: EventType, resourceIds: string[]) =>
      emitMany(
        scope,
        resourceIds.map((resourceId) => ({ eventType, resourceId, data: [] })),
        now,
      ),
  }
}

/** What an operation is called with. All of it is validated against the contract. */
export interface OperationInput {
  path?: Record<string, string>
  /** Typed as the contract types it: comma lists are arrays, integers are numbers. */
  query?: Record<string, unknown>
  body?: unknown
  /** Of the version that somebody has seen: when it is another one by now, nothing is done and 412 is thrown, as with If-Match. */
  updatedAt?: string
  /** Of what writes: called in its transaction, to do it or not. */
  around?: (scope: WriteScope, work: () => Promise<unknown>) => Promise<unknown>
}

/** On whose behalf. */
export interface Caller {
  accountId: string
  userId: string
  finance: 'none' | 'read' | 'write'
}

/** The handler's answer, once what it changed is committed, events and all. What it throws is what the API would answer: `HttpError` or
 *  `InvalidInput`. `ctx` is of the page: headers that the handler sets are the page's, its body is not. */
export async function callOperation(
  { db, now }: { db: Db; now: Date },
  ctx: Context,
  id: OperationId,
  caller: Caller,
  { path = {}, query = {}, body, updatedAt, around = (_, work) => work() }: OperationInput,
): Promise<unknown> {
  assertStorable(ctx, query)
  assertStorable(ctx, body)
  assertValid(validators.params[id].query, query, ([name = '']) => name)
  const bodyValidator = validators.bodies[id]
  if (bodyValidator) assertValid(bodyValidator, body)
  if (!validators.params[id].path(path)) ctx.throw(404)
  const assertMatch = (current: { updated_at?: string }): void => {
    if (updatedAt !== undefined && current.updated_at !== updatedAt)
      ctx.throw(412, 'The record has changed since you read it.')
  }
  const base = { principal: caller, path, query, input: body, now, assertMatch }
  const handler = handlers[id] as unknown as AnyHandler
  const run = async (state: object): Promise<unknown> => {
    const inner: Context = Object.create(ctx, {
      state: { value: { ...base, ...state } },
      body: { value: undefined, writable: true },
    })
    await handler(inner)
    return inner.body
  }
  if (operations[id].access === 'read')
    return run({ scope: accountScope({ dialect: db.dialect, sql: db.read }, caller.accountId) })
  return transaction(db, (trx) => {
    const scope = writeScope(trx, caller.accountId)
    return around(scope, () => run(writeState(scope, now)))
  })
}
