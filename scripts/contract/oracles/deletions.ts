/** Oracle: a deleted record is gone for every operation and from the list. */
import type { Operation } from '../../model/operations.ts'
import { readListWords } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { assertStatus } from '../contract-broken.ts'
import { collectionOf, findOperation } from '../record-kinds.ts'
import { type Check, newRequest, preparePath, prepareRequest, type Run } from '../run.ts'
import { ListUnderTest } from './list-under-test.ts'

export async function* deletionChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await preparePath(run, operation)
  yield {
    what: 'the deleted record',
    async perform() {
      const request = newRequest(run, operation, path)
      const { status } = await run.send(operation, request)
      assertStatus(request, status, {
        check: 'use_after_delete',
        expected: operation.success.status,
        what: 'DELETE',
      })
      for (const each of run.contract.operations)
        if (each.path === operation.path) await assertGone(run, each, path)
      await assertNotListed(run, operation, path)
    },
  }
}

async function assertGone(run: Run, operation: Operation, path: string): Promise<void> {
  const probe = await prepareRequest(run, operation, {}, path)
  const { status } = await run.send(operation, probe)
  assertStatus(probe, status, {
    check: 'use_after_delete',
    expected: 404,
    what: 'a request for the deleted record',
  })
}

async function assertNotListed(run: Run, { path: template }: Operation, path: string) {
  const words = readListWords(run.contract)
  const operation = findOperation(run.contract, 'get', collectionOf(template))
  if (!words || !operation) return
  const parts = path.split('/')
  const id = parts.pop()
  const list = new ListUnderTest(run, operation, parts.join('/'))
  const records = await list.readAll()
  if (records.some((record) => readPointer(record, words.sort.ties) === id))
    throw list.broken('use_after_delete', `the deleted record ${id} is in the list`)
}
