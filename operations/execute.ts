/** Runs an operation for the HTTP API and the console: validate → scope → handler → check. */
import { Readable } from 'node:stream'
import { StatusError } from '../errors.ts'
import type { EventData, EventType } from '../generated/asyncapi.ts'
import { handlers } from '../generated/handlers.ts'
import { type FileBody, type OperationId, operations } from '../generated/operations.ts'
import * as validators from '../generated/validators.js'
import type { Call, Caller, ValidInput } from '../handlers/call.ts'
import type { Db } from '../records/database/open.ts'
import { accountScope, type Scope, type WriteScope, writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import type { MergePatch } from '../records/merge-patch.ts'
import { assertValid } from '../validation.ts'
import { emit, emitMany } from '../webhooks/emit.ts'
import { assertRecordSize } from './record-size.ts'
import { assertBodyRules, assertDistinctSorts } from './request-rules.ts'
import type { ResponseChecker } from './response-check.ts'

/** The input of a client or a form, before validation. Its text is storable: see `assertStorable`. */
export interface RawInput {
  path?: Record<string, string>
  /** Converted by the contract's types: lists are arrays, integers are numbers. */
  query?: Record<string, unknown>
  /** The names of query parameters as the client wrote them, where they differ. */
  spellings?: ReadonlyMap<string, string>
  /** By lower-case name. */
  headers?: Record<string, unknown>
  body?: unknown
}

/** Checks the input against the contract and fills in defaults. Throws InvalidInput for the query, the
 *  headers or the body, in this order, and 404 for a path that cannot name a record. */
export function validate<Id extends OperationId>(
  id: Id,
  { path = {}, query = {}, spellings, headers, body }: RawInput,
): ValidInput<Id> {
  const expected = validators.params[id]
  const spell = (name: string): string => spellings?.get(name) ?? name
  assertValid(expected.query, query, ([name = '']) => spell(name))
  assertDistinctSorts(query.sort, spell('sort'))
  if (expected.headers && headers) {
    const { names, validator } = expected.headers
    assertValid(
      validator,
      headers,
      ([name]) => names.find((header) => header.toLowerCase() === name) ?? '',
    )
  }
  const bodyValidator = validators.bodies[id]
  if (bodyValidator) assertValid(bodyValidator, body)
  assertBodyRules(id, body)
  if (!expected.path(path)) throw new StatusError(404, 'There is no such record.')
  return { path, query, input: body } as ValidInput<Id>
}

export interface ExecuteServices {
  db: Db
  now: () => Date
  checkResponse: ResponseChecker
}

export interface Execution<Id extends OperationId> {
  input: ValidInput<Id>
  caller: Caller
  requestId?: string
  /** The trace of the request. */
  traceparent?: string
  mergePatch?: MergePatch
  /** Is this the version of the record that the client requires? Otherwise nothing is changed and 412 is
   *  thrown. */
  isMatch?: (current: object) => boolean
  /** Runs in the transaction of an operation that writes, and decides whether to call `work`. */
  around?: (scope: WriteScope, work: () => Promise<unknown>) => Promise<unknown>
}

/** Returns the handler's result after its changes and events are committed. Throws StatusError or
 *  InvalidInput. */
export async function execute<Id extends OperationId>(
  { db, now, checkResponse }: ExecuteServices,
  id: Id,
  execution: Execution<Id>,
): Promise<unknown> {
  const { input, caller, requestId, traceparent, mergePatch } = execution
  const { isMatch = () => true, around = (_, work) => work() } = execution
  const at = now()
  let before: object | undefined
  const run = async (scope: Scope, emitters: object): Promise<unknown> => {
    const call = {
      ...input,
      ...emitters,
      scope,
      caller,
      mergePatch,
      now: at,
      assertMatch(current: object) {
        if (!isMatch(current))
          throw new StatusError(412, 'The record has changed since you read it.')
        before = current
      },
    }
    const result = await handlers[id](call as Call<Id>)
    if (input.input) assertRecordSize({ record: result, before, sent: input.input })
    if (!isFile(result))
      checkResponse(id, { status: operations[id].success, body: result }, requestId)
    return result
  }
  if (operations[id].access === 'read') {
    const reading = { dialect: db.dialect, sql: db.read }
    return run(accountScope(reading, caller.accountId), {})
  }
  return transaction(db, (trx) => {
    const scope = writeScope(trx, caller.accountId, traceparent)
    return around(scope, () => run(scope, newEmitters(scope, at)))
  })
}

function newEmitters(scope: WriteScope, now: Date): Pick<Call<OperationId>, 'emit' | 'emitMany'> {
  return {
    emit: (eventType: EventType, resourceId: string, data: EventData[EventType] = []) =>
      emit(scope, { eventType, resourceId, data }, now),
    emitMany: (eventType: EventType, resourceIds: string[]) =>
      emitMany(
        scope,
        resourceIds.map((resourceId) => ({ eventType, resourceId, data: [] })),
        now,
      ),
  }
}

export function isFile(result: unknown): result is FileBody {
  return (result as FileBody | undefined)?.stream instanceof Readable
}
