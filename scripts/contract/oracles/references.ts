/** Oracle: a reference leads to a record of the account that exists. Each reference of a body is
 *  tried alone, while the others are valid. */
import type { Operation } from '../../model/operations.ts'
import { requestSchema } from '../../words/records.ts'
import { type Check, newRequest, type Run } from '../run.ts'
import type { TestRecords } from '../test-records.ts'
import { assertRefused } from './refused.ts'
import { assertChangesNothing } from './unchanged.ts'

export function* referenceChecks(run: Run, operation: Operation): Generator<Check> {
  const { otherRecords, records, target } = run
  const { properties = {} } = requestSchema(run.contract, operation)
  for (const [field, { type, 'x-refers-to': refersTo }] of Object.entries(properties)) {
    const kind = records.kindOf(field)
    if (kind === undefined || type !== 'string') continue
    if (otherRecords !== undefined && target.otherKey !== undefined) {
      const other = { records: otherRecords, key: target.otherKey }
      yield unusable(run, operation, other, {
        field,
        what: 'a record of another account',
        findId: async () => records.sharedId(kind),
      })
    }
    // Without `x-refers-to`, the contract does not say that the service looks for the record.
    const { remove } = kind
    if (refersTo !== undefined && remove)
      yield unusable(
        run,
        operation,
        { records, key: target.key },
        {
          field,
          what: 'a deleted record',
          findId: () => newDeletedId(run, remove),
        },
      )
  }
}

/** An account, and the records to which its records can refer. */
interface Account {
  key: string
  records: TestRecords
}

interface WrongReference {
  field: string
  what: string
  findId(): Promise<string>
}

/** The service refuses a valid body of the account if the field has the ID. */
function unusable(
  run: Run,
  operation: Operation,
  { key, records }: Account,
  { field, what, findId }: WrongReference,
): Check {
  return {
    what: `${field}: the ID of ${what}`,
    async perform() {
      const path = await records.newPath(operation)
      const body = { ...(await records.validBody(operation)), [field]: await findId() }
      const request = { ...newRequest(run, operation, path, { body }), key }
      const expected = { fields: [field], why: `${field} is the ID of ${what}` }
      await assertChangesNothing(run, { operation, path, key, check: 'isolation', what }, () =>
        assertRefused(run, operation, request, expected),
      )
      run.tested(operation.id, 'x-refers-to', field)
    },
  }
}

async function newDeletedId(run: Run, remove: Operation): Promise<string> {
  const path = await run.records.newPath(remove)
  await run.send(remove, newRequest(run, remove, path))
  return path.split('/').at(-1) ?? ''
}
