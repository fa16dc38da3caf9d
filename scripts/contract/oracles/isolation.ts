/** Oracle: an account sees, changes and counts its own records only. */
import { randomUUID } from 'node:crypto'
import type { Operation } from '../../model/operations.ts'
import { findIdempotencyKey } from '../../words/idempotency.ts'
import { findItemSchema, listFilters, readListWords, readMaxPageSize } from '../../words/lists.ts'
import { readField, readPointer } from '../../words/read.ts'
import { readRecordWords, requestSchema } from '../../words/records.ts'
import { assertStatus, ContractBroken } from '../contract-broken.ts'
import { findOperation } from '../record-kinds.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import {
  type Check,
  hasParameter,
  type Input,
  newRequest,
  prepareRequest,
  type Run,
} from '../run.ts'

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

export async function* isolationChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { otherKey } = run.target
  if (otherKey === undefined) return
  const asOther = (request: Request): Request => ({ ...request, key: otherKey })
  if (operation.path.includes('{')) yield* recordChecks(run, operation, asOther)
  else if (findItemSchema(run.contract, operation)) yield* otherListChecks(run, operation, asOther)
  else if (operation.method === 'get') yield* readChecks(run, operation, asOther)
  else if (operation.method === 'post') yield* creationChecks(run, operation, asOther)
}

/** Returns the request with the key of the other account. */
type AsOther = (request: Request) => Request

/** A record of the run's account is unknown to the other account, which cannot change it. */
async function* recordChecks(
  run: Run,
  operation: Operation,
  asOther: AsOther,
): AsyncGenerator<Check> {
  const path = await run.records.newPath(operation)
  const body = await run.records.validBody(operation)
  const read: Request = { method: 'GET', path, headers: {}, key: run.target.key }
  const assertUnknown = async (what: string, headers: Input['headers']) => {
    const probe = asOther(newRequest(run, operation, path, { headers, body }))
    const { status } = await run.send(operation, probe)
    assertStatus(probe, status, { check: 'isolation', expected: 404, what })
  }
  yield {
    what: 'the record of another account',
    async perform() {
      const before = await run.sendUnchecked(read)
      await assertUnknown('a request of another account', {})
      const after = await run.sendUnchecked(read)
      if (before.status === 200 && after.status !== 200)
        throw broken(read, `after the request of another account, GET returned ${after.status}`)
      if (!changesItself(run, operation) && before.text !== after.text)
        throw broken(read, 'the request of another account changed the record')
    },
  }
  const header = operation.method === 'get' ? 'If-None-Match' : 'If-Match'
  if (hasParameter(operation, header))
    yield {
      what: 'the record of another account, with its ETag',
      async perform() {
        const { headers } = await run.sendUnchecked(read)
        await assertUnknown('a conditional request of another account', {
          [header]: headers.get('etag'),
        })
      },
    }
}

/** Whether the service itself changes the records of the operation's path until they are
 *  finished. */
function changesItself({ contract }: Run, { path }: Operation): boolean {
  const get = findOperation(contract, 'get', path)
  return get !== undefined && readRecordWords(contract, get).finished_when !== undefined
}

/** No list, filter or count of the other account shows a record of the run's account. */
async function* otherListChecks(
  run: Run,
  operation: Operation,
  asOther: AsOther,
): AsyncGenerator<Check> {
  const words = readListWords(run.contract)
  if (words === undefined) return
  const build = (query: Input['query']) => newRequest(run, operation, operation.path, { query })
  const maxSize = readMaxPageSize(run.contract, operation, words)
  const size = { [words.page.size]: maxSize }
  const ownList = await run.send(operation, build(size))
  const ownIds = idsIn(ownList, words.items)
  const queries = [{}, ...listOwnFilters(operation, ownList, words.items)]
  for (const query of queries)
    yield {
      what: `the list of another account ${JSON.stringify(query)}`,
      async perform() {
        const probe = asOther(build({ ...size, ...query }))
        const response = await run.send(operation, probe)
        const shown = [...idsIn(response, words.items)].find((id) => ownIds.has(id))
        if (shown !== undefined) throw broken(probe, `the other account is shown ${shown}`)
        const items = readPointer(response.json, words.items)
        if (words.meta.total === undefined) return
        const total = readPointer(response.json, words.meta.total)
        if (Array.isArray(items) && items.length < maxSize && total !== items.length)
          throw broken(probe, `the list has ${items.length} records, but counts ${total}`)
      },
    }
}

/** Queries with one filter each, which records of the run's account match. */
function listOwnFilters(
  operation: Operation,
  { json }: ReceivedResponse,
  items: string,
): Input['query'][] {
  const records = (readPointer(json, items) ?? []) as unknown[]
  return listFilters(operation).flatMap(({ match, fields, parameter }) => {
    if (match === 'after') return [{ [parameter.name]: '2000-01-01T00:00:00Z' }]
    if (match === 'before') return []
    const values = fields.flatMap((field) => records.map((record) => readField(record, field)))
    const value = values
      .flat()
      .find((candidate) => typeof candidate === 'string' && candidate !== '')
    return value === undefined ? [] : [{ [parameter.name]: value }]
  })
}

/** The UUIDs in the response, or only in its records if `items` is the pointer to them. Lists that
 *  are the same for all accounts, such as event types, have no UUIDs. */
function idsIn({ json }: ReceivedResponse, items = ''): Set<string> {
  const records = items === '' ? json : readPointer(json, items)
  return new Set(JSON.stringify(records ?? null).match(UUID) ?? [])
}

/** A response about the caller names no record of another account. */
function* readChecks(run: Run, operation: Operation, asOther: AsOther): Generator<Check> {
  yield {
    what: 'the response to another account',
    async perform() {
      const request = newRequest(run, operation, operation.path)
      const ownIds = idsIn(await run.send(operation, request))
      const probe = asOther(request)
      const otherIds = idsIn(await run.send(operation, probe))
      const shown = [...otherIds].find((id) => ownIds.has(id))
      if (shown !== undefined) throw broken(probe, `the other account is shown ${shown}`)
    },
  }
}

async function* creationChecks(
  run: Run,
  operation: Operation,
  asOther: AsOther,
): AsyncGenerator<Check> {
  const { properties = {} } = requestSchema(run.contract, operation)
  const references = Object.keys(properties).filter((name) => run.records.isReference(name))
  const base = await prepareRequest(run, operation)
  for (const name of references)
    yield {
      what: `${name} of another account`,
      perform: () => assertCannotRefer(run, operation, asOther(base), name),
    }
  const key = findIdempotencyKey(operation)
  if (references.length === 0 && key)
    yield {
      what: `the ${key.name} of another account`,
      perform: () => assertOwnKeys(run, operation, base, asOther, key.name),
    }
}

/** A record of the other account cannot refer to one of the run's account. */
async function assertCannotRefer(
  run: Run,
  operation: Operation,
  base: Request,
  field: string,
): Promise<void> {
  const body = { ...JSON.parse(base.body ?? '{}'), [field]: randomUUID() }
  // Replaces the UUID by the ID of a record of the run's account.
  const filled = await run.records.withReferences(operation, body)
  const probe = { ...base, body: JSON.stringify(filled) }
  const { status } = await run.send(operation, probe)
  if (status === operation.success.status)
    throw broken(probe, `a record refers to the ${field} of another account`)
}

/** Each account has its own idempotency keys. */
async function assertOwnKeys(
  run: Run,
  operation: Operation,
  base: Request,
  asOther: AsOther,
  header: string,
): Promise<void> {
  const request = { ...base, headers: { ...base.headers, [header]: randomUUID() } }
  const probe = asOther(request)
  const ownResponse = await run.send(operation, request)
  const otherResponse = await run.send(operation, probe)
  const path = otherResponse.headers.get('location')
  if (path)
    await run.sendUnchecked(asOther({ ...request, method: 'DELETE', path, body: undefined }))
  assertStatus(probe, otherResponse.status, {
    check: 'isolation',
    expected: operation.success.status,
    what: 'a request with an idempotency key of another account',
  })
  const [ownId] = idsIn(ownResponse)
  if (ownId !== undefined && idsIn(otherResponse).has(ownId))
    throw broken(probe, "the other account got the response to the run's account")
}

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('isolation', request, message)
}
