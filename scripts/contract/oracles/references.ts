/** Oracle: a reference leads to a record of the account that exists. Each reference of a body is
 *  tried alone, while the others are valid. */
import type { Operation } from '../../model/operations.ts'
import { requestSchema } from '../../words/records.ts'
import { type Check, newRequest, preparePath, type Run } from '../run.ts'
import { assertRefused } from './refused.ts'
import { assertChangesNothing } from './unchanged.ts'

export async function* referenceChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { otherRecords } = run
  const { properties = {} } = requestSchema(run.contract, operation)
  for (const [field, { type, 'x-refers-to': refersTo }] of Object.entries(properties)) {
    const kind = run.records.kindOf(field)
    if (kind === undefined || type !== 'string') continue
    const check = (what: string, findId: () => Promise<string>): Check => ({
      what: `${field}: the ID of ${what}`,
      perform: async () => assertUnusable(run, operation, { field, id: await findId(), what }),
    })
    if (otherRecords)
      yield check('a record of another account', async () => otherRecords.sharedId(kind))
    // Without `x-refers-to`, the contract does not say that the service looks for the record.
    const { remove } = kind
    if (refersTo !== undefined && remove)
      yield check('a deleted record', () => newDeletedId(run, remove))
  }
}

async function newDeletedId(run: Run, remove: Operation): Promise<string> {
  const path = await run.records.newPath(remove)
  await run.send(remove, newRequest(run, remove, path))
  return path.split('/').at(-1) ?? ''
}

/** Throws unless the service refuses a valid body whose field has the ID. */
async function assertUnusable(
  run: Run,
  operation: Operation,
  { field, id, what }: { field: string; id: string; what: string },
): Promise<void> {
  const path = await preparePath(run, operation)
  const body = { ...(await run.records.validBody(operation)), [field]: id }
  const request = newRequest(run, operation, path, { body })
  const expected = { fields: [field], why: `${field} is the ID of ${what}` }
  await assertChangesNothing(run, { operation, path, check: 'isolation', what }, () =>
    assertRefused(run, operation, request, expected),
  )
}
