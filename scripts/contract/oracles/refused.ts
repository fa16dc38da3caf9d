/** Assertions about requests that a rule of the contract accepts or refuses. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { fieldErrors, isExplainedBy, namesFields } from '../../words/refusals.ts'
import { assertStatus, ContractBroken, shorten } from '../contract-broken.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { newRequest, type Run } from '../run.ts'

/** Throws unless the service refuses the request with 422. If the contract says where errors name
 *  fields, they must name only fields that match one of `fields`, for example `items.*.key`. */
export async function assertRefused(
  run: Run,
  operation: Operation,
  request: Request,
  { fields, why }: { fields: string[]; why: string },
): Promise<void> {
  const response = await run.send(operation, request)
  const { status, text } = response
  const refuse = (message: string): ContractBroken =>
    new ContractBroken('broken_rule', request, `${message}, because ${why}: ${shorten(text)}`)
  if (status !== 422) throw refuse(`returned ${status} instead of 422`)
  if (!namesFields(run.contract, operation)) return
  const named = Object.keys(fieldErrors(run.contract, operation, response))
  const isExpected = (name: string): boolean => fields.some((field) => isExplainedBy(field, name))
  if (named.length === 0 || !named.every(isExpected))
    throw refuse(
      `the errors name ${named.join(', ') || 'no field'} instead of ${fields.join(' or ')}`,
    )
}

/** Throws unless the service refuses the update, see `assertRefused`, and keeps the record. */
export async function assertUpdateRefused(
  run: Run,
  { update, get }: { update: Operation; get: Operation },
  request: Request,
  expected: { fields: string[]; why: string },
): Promise<void> {
  const read = newRequest(run, get, request.path)
  const before = await run.send(get, read)
  await assertRefused(run, update, request, expected)
  const after = await run.send(get, read)
  if (!isDeepStrictEqual(after.json, before.json))
    throw new ContractBroken('broken_rule', read, 'a refused update changed the record', [request])
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
