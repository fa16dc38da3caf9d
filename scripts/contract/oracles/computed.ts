/** Oracle: fields that the service computes when it creates a record have the values of the table in
 *  `computed` of `x-record`. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { mapValues, type Schema } from '../../model/schema.ts'
import { type ComputedField, readRecordWords, requestSchema } from '../../words/records.ts'
import { show } from '../contract-broken.ts'
import { type CrudKind, idIn, listCrudKinds } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, type Run } from '../run.ts'
import { minimalValue } from '../values/valid-values.ts'
import { sendAndListen } from './events.ts'
import { assertAccepted } from './refused.ts'
import { broken } from './stored-values.ts'

interface Computed extends ComputedField {
  name: string
  kind: CrudKind
}

export function* computedChecks(run: Run, operation: Operation): Generator<Check> {
  for (const computed of listComputed(run, operation))
    for (const [index, row] of computed.table.entries())
      yield {
        what: `${computed.name}: ${show(row)}`,
        perform: () => assertRow(run, computed, row, computed.table.at(index - 1) ?? row),
      }
}

function listComputed({ contract }: Run, operation: Operation): Computed[] {
  const { computed = {} } = readRecordWords(contract, operation)
  const kind = listCrudKinds(contract).find(({ create }) => create === operation)
  return kind ? Object.entries(computed).map(([name, field]) => ({ name, kind, ...field })) : []
}

/** A body for which the service computes a value. Undefined if the operation computes none. */
export async function newComputedBody(run: Run, operation: Operation) {
  const [computed] = listComputed(run, operation)
  const row = computed?.table.find((one) => one.at(-1) !== null)
  return computed && row && (await newBody(run, computed, row)).body
}

/** Creates a record with the inputs of `row`, then updates all inputs to those of `other`. */
async function assertRow(
  run: Run,
  computed: Computed,
  row: unknown[],
  other: unknown[],
): Promise<void> {
  const { name, kind } = computed
  const expected = { name, value: row.at(-1) }
  const { body, paths } = await newBody(run, computed, row)
  const request = newRequest(run, kind.create, kind.create.path, { body })
  // Also compares the data of the event with the record.
  const { response } = await sendAndListen(run, kind.create, request)
  assertValue(request, response.json, expected)
  const path = response.headers.get('location') ?? ''
  for (const { reference, owner, fields } of listInputs(run, computed, other)) {
    const changed = newRequest(run, owner.update, paths.get(reference) ?? path, { body: fields })
    await assertAccepted(run, owner.update, changed, 'an update of the inputs')
  }
  const read = newRequest(run, kind.get, path)
  const { json } = await run.send(kind.get, read)
  assertValue(read, json, expected)
  run.tested(kind.create.id, 'x-record.computed', name)
}

/** A body with the inputs of `row`, and the paths of the new records to which it refers, by the name
 *  of the reference. */
async function newBody(run: Run, computed: Computed, row: unknown[]) {
  const body: JsonObject = { ...(await run.records.validBody(computed.kind.create)) }
  const paths = new Map<string, string>()
  for (const { reference, owner, fields } of listInputs(run, computed, row))
    if (reference === '') Object.assign(body, fields)
    else {
      const path = await run.records.newPath(owner.get, fields)
      paths.set(reference, path)
      body[reference] = idIn(path)
    }
  return { body, paths }
}

interface Inputs {
  /** The field of the new record that refers to the owner. Empty: the owner is the new record. */
  reference: string
  owner: CrudKind
  fields: JsonObject
}

function listInputs(run: Run, { kind, from }: Computed, row: unknown[]): Inputs[] {
  const inputs = new Map<string, JsonObject>()
  for (const [column, path] of from.entries()) {
    const [field = '', reference = ''] = path.split('.').toReversed()
    inputs.set(reference, { ...inputs.get(reference), [field]: row[column] })
  }
  return [...inputs].flatMap(([reference, values]) => {
    const referred = run.records.kindOf(reference) as CrudKind | undefined
    const owner = reference === '' ? kind : referred
    if (owner === undefined) return []
    const { properties = {} } = requestSchema(run.contract, owner.create)
    const fields = mapValues(values, (value, name) => fillIn(properties[name] ?? {}, value))
    return [{ reference, owner, fields }]
  })
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
