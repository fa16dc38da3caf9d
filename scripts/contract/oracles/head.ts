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
      // Other requests may change the record between GET and HEAD.
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const ofGet = await run.send(operation, get)
        difference = findDifference(operation, ofGet, await run.sendUnchecked(head))
        if (difference === undefined) return
        await delay(RETRY_DELAY_MS)
      }
      throw new ContractBroken('header_meaning', head, difference ?? '')
    },
  }
}

function findDifference(
  { success }: Operation,
  ofGet: ReceivedResponse,
  ofHead: ReceivedResponse,
): string | undefined {
  if (ofHead.status !== ofGet.status)
    return `HEAD returned ${ofHead.status}, but GET ${ofGet.status}`
  if (ofHead.text !== '') return 'HEAD has a body'
  // A header that the contract describes with a keyword such as x-counts-down can differ between
  // two requests.
  const changing = new Set(
    listWordedHeaders(success)
      .filter((header) => Object.keys(header).some((keyword) => keyword.startsWith('x-')))
      .map(({ name }) => name.toLowerCase()),
  )
  const names = ['content-type', ...Object.keys(success.headers)]
  const name = names.find(
    (header) =>
      !changing.has(header.toLowerCase()) &&
      ofHead.headers.get(header) !== ofGet.headers.get(header),
  )
  const format = (response: ReceivedResponse): string => response.headers.get(name ?? '') ?? 'none'
  return name && `HEAD has the ${name} ${format(ofHead)}, but GET ${format(ofGet)}`
}
