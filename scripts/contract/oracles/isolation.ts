/** Oracle: an account sees, changes and counts its own records only. */
import { randomUUID } from 'node:crypto'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { findIdempotencyKey, type IdempotencyKey } from '../../words/idempotency.ts'
import { findItemSchema } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { assertStatus, failuresOf } from '../contract-broken.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import {
  type Check,
  hasParameter,
  type Input,
  newRequest,
  prepareRequest,
  type Run,
} from '../run.ts'
import type { TestRecords } from '../test-records.ts'
import { chooseFilterings, chooseOneEach, toParameter } from './lists/list-filter-values.ts'
import { ListUnderTest } from './lists/list-under-test.ts'
import { assertChangesNothing } from './refused.ts'

const broken = failuresOf('isolation')

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

export async function* isolationChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  if (run.target.otherKey === undefined) return
  if (operation.path.includes('{')) yield* recordChecks(run, operation)
  else if (operation.method === 'get') yield* readChecks(run, operation)
  else if (operation.method === 'post') yield* creationChecks(run, operation)
}

/** A request with the key of the other account. */
function requestOfOther(run: Run, operation: Operation, path: string, input: Input): Request {
  return { ...newRequest(run, operation, path, input), key: run.target.otherKey ?? null }
}

/** A record of the run's account is unknown to the other account, which cannot change it. */
async function* recordChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await run.records.newPath(operation)
  const body = await run.records.validBody(operation)
  const assertUnknown = async (what: string, headers: Input['headers'] = {}) => {
    const request = requestOfOther(run, operation, path, { headers, body })
    await assertChangesNothing(run, { operation, request, check: 'isolation', what }, async () => {
      const { status } = await run.send(operation, request)
      assertStatus(request, status, { check: 'isolation', expected: 404, what })
    })
  }
  yield {
    what: 'the record of another account',
    perform: () => assertUnknown('a request of another account'),
  }
  const header = operation.method === 'get' ? 'If-None-Match' : 'If-Match'
  if (hasParameter(operation, header))
    yield {
      what: 'the record of another account, with its ETag',
      async perform() {
        const read = { method: 'GET', path, headers: {}, key: run.target.key }
        const { headers } = await run.sendUnchecked(read)
        const condition = { [header]: headers.get('etag') }
        await assertUnknown('a conditional request of another account', condition)
      },
    }
}

/** No response to the other account, also with a filter, shows or counts a record of the run's
 *  account. */
async function* readChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const isList = findItemSchema(run.contract, operation) !== undefined
  const list = isList ? new ListUnderTest(run, operation) : undefined
  const { words, maxSize = 0 } = list ?? {}
  const size = words ? { [words.page.size]: maxSize } : {}
  const own = await run.send(operation, newRequest(run, operation, operation.path, { query: size }))
  const ownIds = idsIn(own, words?.items)
  const records = (readPointer(own.json, words?.items ?? '') ?? []) as unknown[]
  const filters = list ? listOwnFilters(list, records) : []
  for (const query of [{}, ...filters])
    yield {
      what: `the response to another account ${JSON.stringify(query)}`,
      async perform() {
        const input = { query: { ...size, ...query } }
        const probe = requestOfOther(run, operation, operation.path, input)
        const response = await run.send(operation, probe)
        const shown = [...idsIn(response, words?.items)].find((id) => ownIds.has(id))
        if (shown !== undefined) throw broken(probe, `the other account is shown ${shown}`)
        if (words?.meta.total === undefined) return
        const items = readPointer(response.json, words.items)
        const total = readPointer(response.json, words.meta.total)
        if (Array.isArray(items) && items.length < maxSize && total !== items.length)
          throw broken(probe, `the list has ${items.length} records, but counts ${total}`)
      },
    }
}

/** Queries with one filter each, which records of the run's account match. */
function listOwnFilters(list: ListUnderTest, records: unknown[]): JsonObject[] {
  const tried = chooseFilterings(list, records, [])
  const chosen = chooseOneEach(tried, ({ apply }) => apply(records).length > 0)
  return chosen.map((filtering) => Object.fromEntries([toParameter(filtering)]))
}

/** The UUIDs in the response, or only in its records if `items` is the pointer to them. Lists that
 *  are the same for all accounts, such as event types, have no UUIDs. */
function idsIn({ json }: ReceivedResponse, items = ''): Set<string> {
  const records = items === '' ? json : readPointer(json, items)
  return new Set(JSON.stringify(records ?? null).match(UUID) ?? [])
}

/** Each user has their own idempotency keys if the contract says so with `x-scope`, and each account
 *  in any case. */
function* creationChecks(run: Run, operation: Operation): Generator<Check> {
  const key = findIdempotencyKey(operation)
  if (key === undefined) return
  const { otherKey, readPermissionKey } = run.target
  const { otherRecords, records } = run
  const others = [
    { whose: 'another account', key: otherKey, ownRecords: otherRecords },
    {
      whose: 'another user',
      key: key.isOfUser && operation.permission === null ? readPermissionKey : undefined,
      ownRecords: records,
    },
  ]
  for (const { whose, key: apiKey, ownRecords } of others)
    if (apiKey !== undefined && ownRecords !== undefined)
      yield {
        what: `the ${key.name} of ${whose}`,
        perform: () => assertOwnKeys(run, operation, key, { whose, apiKey, ownRecords }),
      }
}

interface OtherUser {
  whose: string
  apiKey: string
  /** The records to which a record of this user can refer. */
  ownRecords: TestRecords
}

async function assertOwnKeys(
  run: Run,
  operation: Operation,
  { name }: IdempotencyKey,
  { whose, apiKey, ownRecords }: OtherUser,
): Promise<void> {
  const request = await prepareRequest(run, operation, { headers: { [name]: randomUUID() } })
  const own = await ownRecords.validBody(operation)
  const body = own === undefined ? request.body : JSON.stringify(own)
  const probe = { ...request, body, key: apiKey }
  const ownResponse = await run.send(operation, request)
  const otherResponse = await run.send(operation, probe)
  assertStatus(probe, otherResponse.status, {
    check: 'isolation',
    expected: operation.success.status,
    what: `a request with the ${name} of ${whose}`,
  })
  const [ownId] = idsIn(ownResponse)
  if (ownId !== undefined && idsIn(otherResponse).has(ownId))
    throw broken(probe, `the response is that to a request of ${whose}`)
  if (whose === 'another user') run.tested(operation.id, 'x-scope', name)
}
