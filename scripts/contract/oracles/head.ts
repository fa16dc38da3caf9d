/** Oracle: HEAD has the status and the headers of GET, without a body (RFC 9110 §9.3.2). */
import { setTimeout as delay } from 'node:timers/promises'
import type { Operation } from '../../model/operations.ts'
import { listWordedHeaders } from '../../words/headers.ts'
import { ContractBroken } from '../contract-broken.ts'
import type { ReceivedResponse } from '../request.ts'
import { type Check, MAX_TRIES, newRequest, RETRY_DELAY_MS, type Run } from '../run.ts'

export async function* headChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const get = newRequest(run, operation, await run.records.sharedPath(operation))
  const head = { ...get, method: 'HEAD' }
  yield {
    what: 'HEAD',
    async perform() {
      let difference: string | undefined
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const read = await run.send(operation, get)
        difference = findDifference(operation, read, await run.sendUnchecked(head))
        if (difference === undefined) return
        await delay(RETRY_DELAY_MS)
      }
      throw new ContractBroken('header_meaning', head, difference ?? '')
    },
  }
}

function findDifference(
  { success }: Operation,
  read: ReceivedResponse,
  head: ReceivedResponse,
): string | undefined {
  if (head.status !== read.status) return `HEAD returned ${head.status}, but GET ${read.status}`
  if (head.text !== '') return 'HEAD has a body'
  // Headers with a word, such as x-counts-down, change with each request.
  const changing = new Set(
    listWordedHeaders(success)
      .filter((header) => Object.keys(header).some((word) => word.startsWith('x-')))
      .map(({ name }) => name.toLowerCase()),
  )
  const names = ['content-type', ...Object.keys(success.headers)]
  const name = names.find(
    (header) => !changing.has(header) && head.headers.get(header) !== read.headers.get(header),
  )
  return name && `HEAD has the ${name} ${head.headers.get(name)}, but GET ${read.headers.get(name)}`
}
