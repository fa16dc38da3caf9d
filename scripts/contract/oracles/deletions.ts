/** Oracle: a deleted record is gone for every operation and from the list. */
import type { Operation } from '../../model/operations.ts'
import { assertStatus } from '../contract-broken.ts'
import { collectionOf, findOperation, idIn } from '../record-kinds.ts'
import { type Check, newRequest, preparePath, prepareRequest, type Run } from '../run.ts'
import { ListUnderTest } from './lists/list-under-test.ts'
import { assertAccepted } from './refused.ts'

export async function* deletionChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await preparePath(run, operation)
  yield {
    what: 'the deleted record',
    async perform() {
      await assertAccepted(run, operation, newRequest(run, operation, path), 'DELETE')
      for (const each of run.contract.operations)
        if (each.path === operation.path) await assertGone(run, each, path)
      const list = findOperation(run.contract, 'get', collectionOf(operation.path))
      if (list === undefined) return
      const listPath = path.slice(0, path.lastIndexOf('/'))
      await new ListUnderTest(run, list, listPath).assertListed([idIn(path)], false)
    },
  }
}

async function assertGone(run: Run, operation: Operation, path: string): Promise<void> {
  const probe = await prepareRequest(run, operation, {}, path)
  const { status } = await run.send(operation, probe)
  const what = 'a request for the deleted record'
  assertStatus(probe, status, { check: 'use_after_delete', expected: 404, what })
}
