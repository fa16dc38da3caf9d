/** Oracle: fields that the service computes when it creates a record have the values of the table in
 *  `computed` of `x-record`. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { readRecordWords, requestSchema } from '../../words/records.ts'
import { show } from '../contract-broken.ts'
import { type CrudKind, listCrudKinds, listReferredKinds } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, type Run } from '../run.ts'
import { minimalValue } from '../values/valid-values.ts'
import { sendAndListen } from './events.ts'
import { assertAccepted } from './refused.ts'
import { broken } from './stored-values.ts'

/** A record that has inputs: the new record, or one to which it refers. */
interface Owner {
  kind: CrudKind
  /** The field of the new record that refers to the owner. */
  reference?: string
  /** The fields of the owner, each with its column in the table. */
  inputs: { field: string; column: number }[]
}

interface Computed {
  name: string
  kind: CrudKind
  owners: Owner[]
  table: unknown[][]
}

export function* computedChecks(run: Run, operation: Operation): Generator<Check> {
  for (const computed of listComputed(run, operation))
    for (const [index, row] of computed.table.entries())
      yield {
        what: `${computed.name}: ${show(row)}`,
        perform: () => assertRow(run, computed, row, computed.table.at(index - 1) ?? row),
      }
}

function listComputed(run: Run, operation: Operation): Computed[] {
  const { computed = {} } = readRecordWords(run.contract, operation)
  const kind = listCrudKinds(run.contract).find(({ create }) => create === operation)
  if (!kind) return []
  return Object.entries(computed).map(([name, { from, table }]) => {
    const owners = listOwners(run, kind, from)
    return { name, kind, owners, table }
  })
}

/** A body for which the service computes a value. Undefined if the operation computes none. */
export async function newComputedBody(run: Run, operation: Operation) {
  const [computed] = listComputed(run, operation)
  const row = computed?.table.find((one) => one.at(-1) !== null)
  return computed && row && (await newInputs(run, computed, row)).body
}

function listOwners({ contract }: Run, kind: CrudKind, from: string[]): Owner[] {
  const kinds = listCrudKinds(contract)
  const referred = listReferredKinds(contract, kinds)
  const owners = new Map<string, Owner>()
  for (const [column, path] of from.entries()) {
    const [field = '', reference = ''] = path.split('.').toReversed()
    const target = reference === '' ? kind : (referred.get(reference) as CrudKind | undefined)
    if (target === undefined) continue
    const owner = owners.get(reference) ?? { kind: target, reference, inputs: [] }
    owner.inputs.push({ field, column })
    owners.set(reference, owner)
  }
  return [...owners.values()]
}

/** Creates a record with the inputs of `row`, then updates all inputs to those of `other`. */
async function assertRow(
  run: Run,
  computed: Computed,
  row: unknown[],
  other: unknown[],
): Promise<void> {
  const { name, kind, owners } = computed
  const value = row.at(-1)
  const { body, paths } = await newInputs(run, computed, row)
  const request = newRequest(run, kind.create, kind.create.path, { body })
  // Also compares the data of the event with the record.
  const { response } = await sendAndListen(run, kind.create, request)
  assertValue(request, response.json, { name, value })
  const path = response.headers.get('location') ?? ''
  for (const owner of owners) {
    const { update } = owner.kind
    const change = { body: toFields(run, owner, other) }
    const changed = newRequest(run, update, paths.get(owner) ?? path, change)
    await assertAccepted(run, update, changed, 'an update of the inputs')
  }
  const read = newRequest(run, kind.get, path)
  const { json } = await run.send(kind.get, read)
  assertValue(read, json, { name, value })
  run.tested(kind.create.id, 'x-record.computed', name)
}

/** A body with the inputs of `row`, and the paths of the owners to which it refers. */
async function newInputs(run: Run, { kind, owners }: Computed, row: unknown[]) {
  const { records } = run
  const body: JsonObject = { ...(await records.validBody(kind.create)) }
  const paths = new Map<Owner, string>()
  for (const owner of owners)
    if (owner.reference) {
      const path = await records.newPath(owner.kind.get, toFields(run, owner, row))
      paths.set(owner, path)
      body[owner.reference] = path.split('/').at(-1)
    } else Object.assign(body, toFields(run, owner, row))
  return { body, paths }
}

function toFields(run: Run, { kind, inputs }: Owner, row: unknown[]): JsonObject {
  const { properties = {} } = requestSchema(run.contract, kind.create)
  return Object.fromEntries(
    inputs.map(({ field, column }) => [field, fillIn(properties[field] ?? {}, row[column])]),
  )
}

/** The value of the table, with short values for the other required fields of its objects. */
function fillIn(schema: Schema, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((entry) => fillIn(schema.items ?? {}, entry))
  if (typeof value !== 'object' || value === null) return value
  return { ...(minimalValue(schema) as object), ...value }
}

function assertValue(
  request: Request,
  record: unknown,
  { name, value }: { name: string; value: unknown },
): void {
  const actual = (record as JsonObject | undefined)?.[name]
  if (!isDeepStrictEqual(actual, value))
    throw broken(request, `${name} is ${show(actual)} instead of ${show(value)}`)
}
