/** Oracle: an operation refuses requests without a valid API key, and keys without the permission
 *  that the operation needs. Other keys of the account get what the key of the run gets. */
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { readImportWords } from '../../words/imports.ts'
import { findItemSchema, stableText } from '../../words/lists.ts'
import { readWord } from '../../words/read.ts'
import { assertStatus, ContractBroken, show } from '../contract-broken.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import {
  assertSameStatus,
  type Check,
  compareInTries,
  newRequest,
  preparePath,
  prepareRequest,
  type Run,
  waitUntilFinished,
} from '../run.ts'
import { changeOf } from './deliveries.ts'
import { assertChangesNothing } from './refused.ts'

/** RFC 9110 §11.6.1: the header lists challenges, each of which begins with a scheme. A contract has
 *  no other scheme than Bearer. */
const CHALLENGE = /(^|, *)Bearer( |,|$)/i

export async function* keyChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await run.records.sharedPath(operation)
  const request = await prepareRequest(run, operation, {}, path)
  for (const [what, change] of listInvalidKeys(run, operation)) {
    const probe = { ...request, ...change, headers: { ...request.headers, ...change.headers } }
    yield {
      what,
      async perform() {
        const { status, headers } = await run.send(operation, probe)
        assertStatus(probe, status, { check: 'ignored_auth', expected: 401, what })
        const challenge = headers.get('www-authenticate')
        if (challenge === null) return
        const message = `WWW-Authenticate is "${challenge}", without the scheme Bearer`
        if (!CHALLENGE.test(challenge)) throw new ContractBroken('header_meaning', probe, message)
        run.tested(operation.id, 'header www-authenticate', 'WWW-Authenticate')
      },
    }
  }
  yield* schemeChecks(run, operation, path)
  yield* lesserKeyChecks(run, operation)
}

/** How each request differs from a valid one: in words, and its changes. */
function listInvalidKeys(
  { target: { key, invalidKeys = {} }, options }: Run,
  { id }: Operation,
): [string, Partial<Request>][] {
  const Authorization = `Basic ${btoa('user:password')}`
  // A service can limit the requests with such keys, so only the first operation gets all of them.
  const invalid = Object.entries(invalidKeys).slice(0, id === options.ids[0] ? undefined : 1)
  return [
    ['without a key', { key: null }],
    ['with another key', { key: changeKey(key) }],
    ['with a key of another scheme', { key: null, headers: { Authorization } }],
    ['with text before the scheme', { scheme: 'not Bearer' }],
    ['with text after the key', { key: `${key} ${key}` }],
    ...invalid.map(([what, invalidKey]): [string, Partial<Request>] => [
      `with ${what}`,
      { key: invalidKey },
    ]),
  ]
}

/** RFC 9110 §11.1 and §11.4: the case of a scheme has no meaning, and several spaces can follow the
 *  scheme. */
function* schemeChecks(run: Run, operation: Operation, path: string): Generator<Check> {
  // The service refuses the unknown parameter, so that the request changes nothing.
  const request = newRequest(run, operation, path, { query: { not_a_parameter: 1 } })
  for (const scheme of ['bearer', 'BEARER', 'Bearer '])
    yield {
      what: `with the scheme "${scheme}"`,
      perform: () =>
        assertSameStatus(
          run,
          operation,
          { usual: request, probe: { ...request, scheme } },
          { check: 'ignored_auth', what: `a key with the scheme "${scheme}"` },
        ),
    }
}

/** Changes the last character of the key. */
function changeKey(key: string): string {
  return `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`
}

/** A key of the account that may do less than the key of the run. */
interface LesserKey {
  what: string
  key: string | undefined
  /** `values` are those of `x-forbidden-with` if the request is about a record that has them. */
  isPermitted(operation: Operation, values: JsonObject | undefined): boolean
}

function listLesserKeys(
  { target, contract: { modules } }: Run,
  { responses }: Operation,
): LesserKey[] {
  const isRefused = responses.some(({ status }) => status === 403)
  return [
    {
      what: isRefused ? 'a key without the permission' : 'a Read Only key',
      key: target.restrictedKey,
      isPermitted: (operation, values) =>
        !isRefused ||
        (operation.method === 'get' && readForbidden(operation) !== undefined && !values),
    },
    {
      what: 'a Full Access key without the permission',
      key: target.noPermissionKey,
      isPermitted: ({ permission }, values) => permission === null && values === undefined,
    },
    {
      what: 'a key with the permission to read',
      key: target.readPermissionKey,
      isPermitted(operation, values) {
        const { permission, method } = operation
        if (method === 'get') return permission === null || modules.includes(permission)
        // An import changes the records of its rows.
        const changesValues = values !== undefined && readImportWords(operation) !== undefined
        return permission === null && !changesValues
      },
    },
  ]
}

/** The values of records that need a permission. Undefined if all or none do. */
function readForbidden({ place }: Operation): JsonObject | undefined {
  return readWord<JsonObject>(place, 'x-forbidden-with')
}

function* lesserKeyChecks(run: Run, operation: Operation): Generator<Check> {
  const forbidden = readForbidden(operation)
  for (const values of forbidden ? [undefined, forbidden] : [undefined])
    for (const { what, key, isPermitted } of listLesserKeys(run, operation))
      if (key !== undefined)
        yield {
          what: `with ${what}${values ? `, ${show(values)}` : ''}`,
          async perform() {
            const request = await newCall(run, operation, values)
            const probe = { what, request, key }
            if (!isPermitted(operation, values)) await assertForbidden(run, operation, probe)
            else if (operation.method === 'get') await assertSameResponse(run, operation, probe)
            else await assertReturns(run, operation, probe, operation.success.status)
          },
        }
}

/** A valid request about a record with the values. */
async function newCall(
  run: Run,
  operation: Operation,
  values: JsonObject | undefined,
): Promise<Request> {
  const isCreate = operation.method === 'post'
  const path =
    values === undefined || isCreate
      ? await preparePath(run, operation)
      : await run.records.newPath(operation, values)
  if (values !== undefined && operation.method === 'get')
    await waitUntilFinished(run, operation, path)
  let body = operation.method === 'patch' ? changeOf(run, operation) : undefined
  if (isCreate && values) body = { ...(await run.records.validBody(operation)), ...values }
  return await prepareRequest(run, operation, { body }, path)
}

interface Probe {
  what: string
  /** The request with the key of the run. */
  request: Request
  key: string
}

async function assertReturns(
  run: Run,
  operation: Operation,
  { what, request, key }: Probe,
  expected: number,
): Promise<ReceivedResponse> {
  const probe = { ...request, key }
  const response = await run.send(operation, probe)
  assertStatus(probe, response.status, { check: 'ignored_permission', expected, what })
  return response
}

async function assertForbidden(run: Run, operation: Operation, probe: Probe): Promise<void> {
  const { what, request } = probe
  const attempt = { operation, request, check: 'ignored_permission', what } as const
  await assertChangesNothing(run, attempt, () => assertReturns(run, operation, probe, 403))
  for (const word of ['x-permission', 'x-forbidden-with']) run.tested(operation.id, word)
}

/** Throws unless the key gets the response that the key of the run gets. Only the status of a
 *  response about the key itself. */
async function assertSameResponse(run: Run, operation: Operation, probe: Probe): Promise<void> {
  const { what, request, key } = probe
  await compareInTries(async () => {
    const usual = await run.send(operation, request)
    const response = await assertReturns(run, operation, probe, usual.status)
    const [text, expected] = [response, usual].map((one) => stableText(run.contract, one))
    if (isAboutKey(run, operation) || text === expected) return undefined
    const message = `${what} got another body than the run's key`
    return new ContractBroken('isolation', { ...request, key }, message, [request])
  })
}

/** Whether the operation returns neither a record nor a list. */
function isAboutKey({ contract }: Run, operation: Operation): boolean {
  return !operation.path.includes('{') && findItemSchema(contract, operation) === undefined
}
