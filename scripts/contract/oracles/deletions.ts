/** Oracle: a deleted record is gone for every operation and from the list. */
import type { Operation } from '../../model/operations.ts'
import { readListWords, readMaxPageSize } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { assertStatus, ContractBroken } from '../contract-broken.ts'
import { collectionOf, findOperation } from '../record-kinds.ts'
import { type Check, newRequest, preparePath, prepareRequest, type Run } from '../run.ts'

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

const MAX_PAGES = 20

/** Reads at most `MAX_PAGES` pages of the list. */
async function assertNotListed(run: Run, { path: template }: Operation, path: string) {
  const words = readListWords(run.contract)
  const list = findOperation(run.contract, 'get', collectionOf(template))
  if (!words || !list) return
  const size = readMaxPageSize(run.contract, list, words)
  const parts = path.split('/')
  const id = parts.pop()
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const query = { [words.page.size]: size, [words.page.parameter]: page }
    const probe = newRequest(run, list, parts.join('/'), { query })
    const { json } = await run.send(list, probe)
    const items = (readPointer(json, words.items) ?? []) as unknown[]
    if (items.some((item) => readPointer(item, words.sort.ties) === id))
      throw new ContractBroken('use_after_delete', probe, `the deleted record ${id} is in the list`)
    if (items.length < size) return
  }
}
