/** Oracle: an account sees, changes and counts its own records only. */
import { randomUUID } from 'node:crypto'
import type { Operation } from '../../model/operations.ts'
import { findIdempotencyKey } from '../../words/idempotency.ts'
import { findItemSchema, listFilters, readListWords, readMaxPageSize } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { readRecordWords } from '../../words/records.ts'
import { assertStatus, ContractBroken } from '../checks.ts'
import { findOperation } from '../record-operations.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import {
  buildRequest,
  type Check,
  type Input,
  newRequest,
  type Run,
  validBody,
} from '../test-run.ts'

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('isolation', request, message)
}

export async function* isolationChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { otherKey } = run.target
  if (otherKey === undefined) return
  const asOther = (request: Request): Request => ({ ...request, key: otherKey })
  if (operation.path.includes('{')) yield* recordChecks(run, operation, asOther)
  else if (findItemSchema(run.contract, operation)) yield* otherListChecks(run, operation, asOther)
  else if (operation.method === 'get') yield* readChecks(run, operation, asOther)
  else if (operation.method === 'post') yield* creationChecks(run, operation, asOther)
}

type AsOther = (request: Request) => Request

/** A record of the run's account is unknown to the other account, and stays as it is. */
async function* recordChecks(
  run: Run,
  operation: Operation,
  asOther: AsOther,
): AsyncGenerator<Check> {
  const id = operation.id
  const path = await run.records.newPath(operation)
  const valid = await validBody(run, operation)
  const read: Request = { method: 'GET', path, headers: {}, key: run.target.key }
  const send = async (what: string, headers: Input['headers']) => {
    const input = { headers }
    const probe = asOther(newRequest(run, operation, path, { ...input, body: valid }))
    const { status } = await run.send(id, probe)
    assertStatus(probe, status, { check: 'isolation', expected: 404, what })
  }
  yield {
    what: 'the record of another account',
    async perform() {
      const before = await run.plain(read)
      await send('a request of another account', {})
      const after = await run.plain(read)
      if (before.status === 200 && after.status !== 200)
        throw broken(read, `after the request of another account, GET returned ${after.status}`)
      if (!changesItself(run, operation) && before.text !== after.text)
        throw broken(read, 'the request of another account changed the record')
    },
  }
  const header = operation.method === 'get' ? 'If-None-Match' : 'If-Match'
  if (operation.parameters.some(({ name }) => name === header))
    yield {
      what: 'the record of another account, with its ETag',
      async perform() {
        const { headers } = await run.plain(read)
        await send('a conditional request of another account', { [header]: headers.get('etag') })
      },
    }
}

/** The service itself changes such records until they are finished. */
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
  const own = await run.send(operation.id, build(size))
  const ownIds = idsIn(own, words.items)
  const queries = [{}, ...listOwnFilters(operation, own, words.items)]
  for (const query of queries)
    yield {
      what: `the list of another account ${JSON.stringify(query)}`,
      async perform() {
        const probe = asOther(build({ ...size, ...query }))
        const response = await run.send(operation.id, probe)
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

/** Filters by references and texts of the records of the run's account. */
function listOwnFilters(
  operation: Operation,
  { json }: ReceivedResponse,
  items: string,
): Input['query'][] {
  const records = (readPointer(json, items) ?? []) as unknown[]
  return listFilters(operation).flatMap(({ match, fields, parameter }) => {
    if (match === 'after') return [{ [parameter.name]: '2000-01-01T00:00:00Z' }]
    if (match === 'before') return []
    const values = fields.flatMap((field) =>
      records.map((record) => readPointer(record, `/${field.replaceAll('.', '/')}`)),
    )
    const value = values
      .flat()
      .find((candidate) => typeof candidate === 'string' && candidate !== '')
    return value === undefined ? [] : [{ [parameter.name]: value }]
  })
}

/** The IDs of records. Both accounts have the same catalogues, whose entries have none. */
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
      const own = idsIn(await run.send(operation.id, request))
      const probe = asOther(request)
      const other = idsIn(await run.send(operation.id, probe))
      const shown = [...other].find((id) => own.has(id))
      if (shown !== undefined) throw broken(probe, `the other account is shown ${shown}`)
    },
  }
}

/** Deletes what the other account created. */
async function remove({ plain, target }: Run, { headers }: ReceivedResponse): Promise<void> {
  const path = headers.get('location')
  if (path && target.otherKey)
    await plain({ method: 'DELETE', path, headers: {}, key: target.otherKey })
}

/** A record cannot refer to one of another account, and each account has its own idempotency
 *  keys. */
async function* creationChecks(
  run: Run,
  operation: Operation,
  asOther: AsOther,
): AsyncGenerator<Check> {
  const id = operation.id
  const { properties = {} } = run.records.inlineSchema(operation) ?? {}
  const body = await validBody(run, operation)
  const base = await buildRequest(run, operation, { body })
  const references = Object.keys(properties).filter((name) => run.records.isReference(name))
  for (const name of references)
    yield {
      what: `${name} of another account`,
      async perform() {
        const filled = await run.records.withReferences(operation, {
          ...body,
          [name]: randomUUID(),
        })
        const probe = asOther({ ...base, body: JSON.stringify(filled) })
        const { status } = await run.send(id, probe)
        if (status === operation.success.status)
          throw broken(probe, `a record refers to the ${name} of another account`)
      },
    }
  const key = findIdempotencyKey(operation)
  if (references.length === 0 && key)
    yield {
      what: `the ${key.name} of another account`,
      async perform() {
        const headers = { ...base.headers, [key.name]: randomUUID() }
        const own = await run.send(id, { ...base, headers })
        const probe = asOther({ ...base, headers })
        const other = await run.send(id, probe)
        await remove(run, other)
        assertStatus(probe, other.status, {
          check: 'isolation',
          expected: operation.success.status,
          what: 'a key of another account',
        })
        const [ownId] = [...idsIn(own)]
        if (ownId !== undefined && idsIn(other).has(ownId))
          throw broken(probe, 'the response to the other account was repeated')
      },
    }
}
