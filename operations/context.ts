/** What a handler is given. Types only. */
import type { ParameterizedContext } from 'koa'
import type { Principal } from '../auth/api-key.ts'
import type { EventData } from '../generated/asyncapi.ts'
import type {
  Body,
  Emits,
  OperationId,
  operations,
  PathParams,
  QueryParams,
  SuccessBody,
} from '../generated/operations.ts'
import type { Scope, WriteScope } from '../records/database/scope.ts'

export type Access<Id extends OperationId> = (typeof operations)[Id]['access']

interface OperationState<Id extends OperationId> {
  /** The account's records. In an operation that writes: inside the transaction that is committed before the answer is sent. */
  scope: Access<Id> extends 'write' ? WriteScope : Scope
  principal: Principal
  /** Validated against the contract: comma lists are arrays, integers are numbers, defaults are filled in. */
  path: PathParams<Id>
  query: QueryParams<Id>
  input: Body<Id>
  now: Date
  /** Records an event in the same transaction. Takes only what the operation's `x-emits` declares. */
  emit<Type extends Emits<Id>>(
    type: Type,
    resourceId: string,
    ...data: EventData[Type] extends [] ? [] : [EventData[Type]]
  ): Promise<void>
  /** The same event for several records at once. */
  emitMany(type: Emits<Id>, resourceIds: string[]): Promise<void>
  /** 412 unless `If-Match` is absent or names this version of the record. */
  assertMatch(current: object): void
}

/** The Koa context of an operation. The status is the contract's success status; `ETag` and `Location` follow from the body. */
export type Context<Id extends OperationId> = ParameterizedContext<
  OperationState<Id>,
  object,
  SuccessBody<Id>
>

/** A handler sets `ctx.body`, or throws: `ctx.assert`, `ctx.throw` or `InvalidInput`. */
export type Handler<Id extends OperationId> = (ctx: Context<Id>) => Promise<void>
