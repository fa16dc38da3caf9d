/** Oracle: the items of a batch have the results and the events of single requests. */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { type Batch, findBatch } from '../../words/batches.ts'
import { requestSchema } from '../../words/records.ts'
import { fieldErrors } from '../../words/refusals.ts'
import { ContractBroken, show } from '../contract-broken.ts'
import { idIn } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, prepareRequest, type Run } from '../run.ts'
import { objectMutations } from '../values/invalid-values.ts'
import { limitValues, type NamedValue } from '../values/limit-values.ts'
import { readEvents } from './events.ts'
import { assertAccepted, assertRefused } from './refused.ts'

/** Fewer than a page of events. */
const ITEMS_PER_BATCH = 12
const MAX_BODIES = 10

export function* batchChecks(run: Run, operation: Operation): Generator<Check> {
  const batch = findBatch(run.contract, operation)
  if (batch === undefined) return
  const cases = [...listCases(run, batch.create), ...listCases(run, batch.update)]
  for (let start = 0; start < cases.length; start += ITEMS_PER_BATCH)
    yield {
      what: `the items from ${start}`,
      perform: () => assertLikeSingles(run, batch, cases.slice(start, start + ITEMS_PER_BATCH)),
    }
  yield {
    what: 'updates of records that do not exist',
    perform: () => assertUnknown(run, batch, run.target.key, [randomUUID(), randomUUID()]),
  }
  yield {
    what: 'an upsert twice, and updates by another account',
    async perform() {
      const names = await assertUpsert(run, batch)
      const { otherKey } = run.target
      if (otherKey !== undefined) await assertUnknown(run, batch, otherKey, names)
    },
  }
}

/** A request of the operation. Calling `newBody` again gives the same values. */
interface Case {
  operation: Operation
  newBody(valid: JsonObject): unknown
}

/** Some of the valid and invalid bodies, and all with a value of an enumeration, which can emit other
 *  events. */
function listCases(run: Run, operation: Operation): Case[] {
  const schema = requestSchema(run.contract, operation)
  const isOption = ({ value }: NamedValue): boolean =>
    Object.keys(value as object).some((name) => schema.properties?.[name]?.enum !== undefined)
  const limits = limitValues(schema)
  return [
    ...[...limits.filter(isOption), ...spread(limits)].map(
      ({ value }) =>
        () =>
          value,
    ),
    ...spread(objectMutations(schema)).map(({ applyTo }) => applyTo),
  ].map((newBody) => ({ operation, newBody }))
}

/** At most `MAX_BODIES` of the values. */
function spread<T>(values: T[]): T[] {
  const step = Math.ceil(values.length / MAX_BODIES)
  return values.filter((_, index) => index % step === 0)
}

/** What a request or an item leads to. */
interface Outcome {
  status: number
  errors: object | undefined
}

async function assertLikeSingles(run: Run, batch: Batch, cases: Case[]): Promise<void> {
  const { records } = run
  const singles: Request[] = []
  for (const { operation, newBody } of cases) {
    const valid = (await records.validBody(operation)) ?? {}
    const body = newBody(valid) as JsonObject
    singles.push(await prepareRequest(run, operation, { body }))
  }
  const { createdCount } = records
  const items: JsonObject[] = []
  for (const [index, { operation }] of cases.entries()) {
    const data = JSON.parse(singles[index]?.body ?? '{}')
    const id = operation === batch.update ? idIn(await records.newPath(operation)) : undefined
    items.push(id ? { action: 'update', id, data } : { action: 'create', data })
  }
  await assertAtomic(run, batch, items)
  const request = requestOf(run, batch, { items })
  const done = await listening(run, async () =>
    readOutcomes(await assertAccepted(run, batch.operation, request, 'a batch')),
  )
  for (const type of done.events) run.tested(batch.operation.id, 'x-emits', type)
  // The unique values of the items are free again for the single requests.
  await records.cleanUp(createdCount)
  const expected = await listening(run, async () => {
    const outcomes: Outcome[] = []
    for (const [index, { operation }] of cases.entries()) {
      const response = await run.send(operation, singles[index] as Request)
      const { errors } = (response.json ?? {}) as { errors?: object }
      outcomes.push({ status: response.status, errors })
    }
    return outcomes
  })
  if (!isDeepStrictEqual(done, expected))
    throw broken(request, `led to ${show(done)}, but single requests to ${show(expected)}`)
  run.tested(batch.operation.id, 'x-batch')
  // An update has the ID, and a create has none.
  run.tested(batch.operation.id, 'body optional', 'items.*.id')
}

/** Runs `act`. Returns its outcomes, and the types of the events since, oldest first. */
async function listening(run: Run, act: () => Promise<Outcome[]>) {
  const oldIds = new Set((await readEvents(run)).map(({ id }) => id))
  const outcomes = await act()
  const events = (await readEvents(run)).filter(({ id }) => !oldIds.has(id))
  return { outcomes, events: events.map(({ type }) => type).toReversed() }
}

/** Throws unless the items are all refused together with one that is invalid. */
async function assertAtomic(run: Run, batch: Batch, items: JsonObject[]): Promise<void> {
  const { operation } = batch
  const invalid = { action: 'create', data: { not_a_field: 1 } }
  const request = requestOf(run, batch, { atomic: true, items: [...items, invalid] })
  const { events } = await listening(run, async () => {
    const response = await run.send(operation, request)
    const named = Object.keys(fieldErrors(run.contract, operation, response))
    if (response.status === 422 && named.length > 0 && named.every(isOfItem)) return []
    throw broken(request, `returned ${response.status} and named ${named.join(', ') || 'no field'}`)
  })
  if (events.length > 0) throw broken(request, `emitted ${events.join(', ')}`)
  run.tested(operation.id, 'x-refusals', 'items.*')
}

const isOfItem = (field: string): boolean => /^items\.\d+\./.test(field)

/** Throws unless the owner of the key is told that no record has the ID, or the key of an upsert. */
async function assertUnknown(
  run: Run,
  batch: Batch,
  key: string | null,
  [id, value]: RecordNames,
): Promise<void> {
  const items = [
    { action: 'update', id, data: {} },
    { action: 'update', data: { [batch.key]: value } },
  ]
  const request = { ...requestOf(run, batch, { items }), key }
  const results = readResults(await assertAccepted(run, batch.operation, request, 'a batch'))
  if (results.some(({ status }) => status !== 404))
    throw broken(request, `updated a record that its account does not have: ${show(results)}`)
  const fields = ['items.0.id', `items.1.data.${batch.key}`]
  const atomic = { ...requestOf(run, batch, { atomic: true, items }), key }
  await assertRefused(run, batch.operation, atomic, { fields, why: 'no such record exists' })
}

/** The ID of a record, and the value of its field that names it for an upsert. */
type RecordNames = [id: string, value: string]

async function assertUpsert(run: Run, batch: Batch): Promise<RecordNames> {
  const valid = await run.records.validBody(batch.create)
  const value = randomUUID()
  const item = { action: 'upsert', data: { ...valid, [batch.key]: value } }
  const request = requestOf(run, batch, { items: [item, item] })
  const results = readResults(await assertAccepted(run, batch.operation, request, 'a batch'))
  const [first, second] = results.map(({ record }) => (record as JsonObject | undefined)?.id)
  const statuses = results.map(({ status }) => status).join()
  if (statuses !== '201,200' || first !== second)
    throw broken(request, `returned ${statuses} for the records ${first} and ${second}`)
  return [String(first), value]
}

function requestOf(run: Run, { operation }: Batch, body: JsonObject): Request {
  return newRequest(run, operation, operation.path, { body })
}

function readOutcomes(response: { json: unknown }): Outcome[] {
  return readResults(response).map(({ status, errors }) => ({
    status: Number(status),
    errors: errors as object | undefined,
  }))
}

function readResults({ json }: { json: unknown }): JsonObject[] {
  return ((json ?? {}) as { results?: JsonObject[] }).results ?? []
}

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('broken_rule', request, `the batch ${message}`)
}
