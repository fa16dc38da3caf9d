/** Assertions about requests that the service accepts, refuses, or that must change nothing. */
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { readListWords } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { readRecordWords } from '../../words/records.ts'
import { fieldErrors, isExplainedBy, namesFields } from '../../words/refusals.ts'
import { assertStatus, type CheckName, ContractBroken, shorten } from '../contract-broken.ts'
import { findOperation } from '../record-kinds.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { newRequest, type Run } from '../run.ts'

/** Throws unless the service refuses the request with 422 and changes nothing. If the contract says
 *  where errors name fields, they must name only fields that match one of `fields`, for example
 *  `items.*.key`. */
export async function assertRefused(
  run: Run,
  operation: Operation,
  request: Request,
  { fields, why }: { fields: string[]; why: string },
): Promise<void> {
  const { key } = request
  const attempt = {
    operation,
    request,
    key,
    check: 'broken_rule',
    what: 'a refused request',
  } as const
  await assertChangesNothing(run, attempt, async () => {
    const response = await run.send(operation, request)
    const { status, text } = response
    const refuse = (message: string): ContractBroken =>
      new ContractBroken('broken_rule', request, `${message}, because ${why}: ${shorten(text)}`)
    if (status !== 422) throw refuse(`returned ${status} instead of 422`)
    if (!namesFields(run.contract, operation)) return
    const named = Object.keys(fieldErrors(run.contract, operation, response))
    const isExpected = (name: string) => fields.some((field) => isExplainedBy(field, name))
    if (named.length === 0 || !named.every(isExpected))
      throw refuse(
        `the errors name ${named.join(', ') || 'no field'} instead of ${fields.join(' or ')}`,
      )
  })
}

/** Throws unless the service accepts the request. */
export async function assertAccepted(
  run: Run,
  operation: Operation,
  request: Request,
  what: string,
): Promise<ReceivedResponse & { json: JsonObject }> {
  const response = await run.send(operation, request)
  const { status } = response
  assertStatus(request, status, { check: 'broken_rule', expected: operation.success.status, what })
  return response as ReceivedResponse & { json: JsonObject }
}

interface Attempt {
  operation: Operation
  request: Request
  /** The key that reads. By default, that of the run. */
  key?: string | null
  check: CheckName
  /** The request, for the message. */
  what: string
}

/** Throws ContractBroken unless a GET of the request's path returns the same before and after
 *  `send`. */
export async function assertChangesNothing(
  run: Run,
  { operation, request, key = run.target.key, check, what }: Attempt,
  send: () => Promise<unknown>,
): Promise<void> {
  const get = findOperation(run.contract, 'get', operation.path)
  if (get === undefined || operation.method === 'get') {
    await send()
    return
  }
  const read = { ...newRequest(run, get, request.path), key }
  const before = await readState(run, get, read)
  await send()
  const after = await readState(run, get, read)
  if (after === before) return
  const message = `after ${what}, GET returned ${after} instead of ${before}`
  throw new ContractBroken(check, read, message, [request])
}

/** The record, or the number of the records of a list. Only the status of a record that the service
 *  itself changes. */
async function readState(run: Run, get: Operation, read: Request): Promise<string> {
  const { status, text, json } = await run.sendUnchecked(read)
  const changesItself = readRecordWords(run.contract, get).finished_when !== undefined
  const pointer = readListWords(run.contract)?.meta.total
  const total = pointer === undefined ? undefined : readPointer(json, pointer)
  return `${status} ${total ?? (changesItself ? '' : text)}`.trim()
}
