/** Oracle: a reference leads to a record of the account that exists, and that has the values of
 *  `x-refers-with`. Each reference of a body is tried alone, while the others are valid. */
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { requestSchema } from '../../words/records.ts'
import { idIn } from '../record-kinds.ts'
import { type Check, newRequest, preparePath, type Run, UNKNOWN_ID } from '../run.ts'
import type { TestRecords } from '../test-records.ts'
import { assertAccepted, assertRefused } from './refused.ts'
import { listStates, newRecordIn } from './states.ts'

export function* referenceChecks(run: Run, operation: Operation): Generator<Check> {
  const { properties = {} } = requestSchema(run.contract, operation)
  for (const [field, schema] of Object.entries(properties)) {
    for (const wrong of listWrong(run, field, schema))
      yield {
        what: `${field}: the ID of ${wrong.what}`,
        perform: () => assertUnusable(run, operation, field, wrong),
      }
    if (schema['x-refers-to'] !== undefined && schema.format === 'uuid')
      yield {
        what: `${field}: an ID in upper case`,
        perform: () => assertUpperCase(run, operation, field),
      }
  }
}

/** A record to which the field must not refer. */
interface WrongReference {
  what: string
  /** The word of the contract that forbids the reference. */
  word: 'x-refers-to' | 'x-refers-with'
  findId(): Promise<string>
  /** The account that sends the request, and the records to which its records can refer. */
  key: string
  records: TestRecords
}

function listWrong(run: Run, field: string, schema: Schema): WrongReference[] {
  const { otherRecords, records, target } = run
  const kind = records.kindOf(field)
  if (kind === undefined || schema.type !== 'string') return []
  const wrong: WrongReference[] = []
  if (otherRecords !== undefined && target.otherKey !== undefined)
    wrong.push({
      what: 'a record of another account',
      word: 'x-refers-to',
      findId: async () => records.sharedId(kind),
      key: target.otherKey,
      records: otherRecords,
    })
  // Without `x-refers-to`, the contract does not say that the service looks for the record.
  const { remove } = kind
  const own = { key: target.key, records }
  if (schema['x-refers-to'] !== undefined && remove)
    wrong.push({
      what: 'a deleted record',
      word: 'x-refers-to',
      findId: () => newDeletedId(run, remove),
      ...own,
    })
  for (const [name, value] of Object.entries(schema['x-refers-with'] ?? {}))
    for (const state of listStates(run, kind, name).filter((other) => other !== value))
      wrong.push({
        what: `a record with ${name} ${state}`,
        word: 'x-refers-with',
        findId: async () => idIn(await newRecordIn(run, kind, name, state)),
        ...own,
      })
  return wrong
}

/** Throws unless the service refuses a valid body whose field has the ID. */
async function assertUnusable(
  run: Run,
  operation: Operation,
  field: string,
  { what, word, findId, key, records }: WrongReference,
): Promise<void> {
  const path = await records.newPath(operation)
  const body = { ...(await records.validBody(operation)), [field]: await findId() }
  const request = { ...newRequest(run, operation, path, { body }), key }
  const why = `${field} is the ID of ${what}`
  await assertRefused(run, operation, request, { fields: [field], why })
  run.tested(operation.id, word, field)
}

async function assertUpperCase(run: Run, operation: Operation, field: string): Promise<void> {
  const references = await run.records.withReferences(operation, { [field]: UNKNOWN_ID })
  const id = String(references[field]).toUpperCase()
  const body = { ...(await run.records.validBody(operation)), [field]: id }
  const request = newRequest(run, operation, await preparePath(run, operation), { body })
  await assertAccepted(run, operation, request, `an ID in upper case in ${field}`)
}

async function newDeletedId(run: Run, remove: Operation): Promise<string> {
  const path = await run.records.newPath(remove)
  await run.send(remove, newRequest(run, remove, path))
  return idIn(path)
}
