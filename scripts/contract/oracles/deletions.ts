/** Oracle: a deleted record is gone for every operation and from the list. */
import type { Operation } from '../../model/operations.ts'
import { readListWords, readMaxPageSize } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { assertStatus, ContractBroken } from '../checks.ts'
import { type Check, findPath, newRequest, type Run, validBody } from '../test-run.ts'
import { isItemOf } from './stored-values.ts'

export async function* deletionChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await findPath(run, operation)
  yield {
    what: 'the deleted record',
    async perform() {
      const request = newRequest(run, operation, path)
      const { status } = await run.send(operation.id, request)
      assertStatus(request, status, {
        check: 'use_after_delete',
        expected: operation.success.status,
        what: 'DELETE',
      })
      for (const other of run.contract.operations)
        if (other.path === operation.path) await assertGone(run, other, path)
      await assertNotListed(run, operation, path)
    },
  }
}

async function assertGone(run: Run, operation: Operation, path: string): Promise<void> {
  const valid = await validBody(run, operation)
  const probe = newRequest(run, operation, path, { body: valid })
  const { status } = await run.send(operation.id, probe)
  assertStatus(probe, status, {
    check: 'use_after_delete',
    expected: 404,
    what: 'a request for the deleted record',
  })
}

/** Reads the first page, which has all records of an account without other activity. */
async function assertNotListed(
  run: Run,
  { path: template }: Operation,
  path: string,
): Promise<void> {
  const words = readListWords(run.contract)
  const list = run.contract.operations.find(
    ({ path: collection, method }) => method === 'get' && isItemOf(template, collection),
  )
  if (!words || !list) return
  const query = { [words.page.size]: readMaxPageSize(run.contract, list, words) }
  const [id, ...above] = path.split('/').reverse()
  const probe = newRequest(run, list, above.reverse().join('/'), { query })
  const { json } = await run.send(list.id, probe)
  const items = (readPointer(json, words.items) ?? []) as unknown[]
  if (items.some((item) => readPointer(item, words.sort.ties) === id))
    throw new ContractBroken('use_after_delete', probe, `the deleted record ${id} is in the list`)
}
