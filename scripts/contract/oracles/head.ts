/** Oracle: HEAD has the status and the headers of GET, without a body (RFC 9110 §9.3.2). */
import type { Operation } from '../../model/operations.ts'
import { listCommonHeaders, listWordedHeaders } from '../../words/headers.ts'
import { failuresOf } from '../contract-broken.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import {
  type Check,
  compareInTries,
  hasParameter,
  newRequest,
  type Run,
  UNKNOWN_ID,
  withId,
} from '../run.ts'

const broken = failuresOf('header_meaning')

export async function* headChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await run.records.sharedPath(operation)
  const get = newRequest(run, operation, path)
  const variants: [string, Request][] = [
    ['HEAD', get],
    ['HEAD without a key', { ...get, key: null }],
    ['HEAD with an unknown parameter', { ...get, path: `${path}?not_a_parameter=1` }],
  ]
  if (operation.path.includes('{'))
    variants.push(['HEAD of an unknown ID', { ...get, path: withId(operation, path, UNKNOWN_ID) }])
  if (hasParameter(operation, 'If-None-Match'))
    variants.push(['HEAD of the current version', { ...get, headers: { 'If-None-Match': '*' } }])
  for (const [what, request] of variants)
    yield { what, perform: () => assertSameAsGet(run, operation, request) }
}

async function assertSameAsGet(run: Run, operation: Operation, get: Request): Promise<void> {
  const head = { ...get, method: 'HEAD' }
  await compareInTries(async () => {
    const ofGet = await run.send(operation, get)
    const difference = findDifference(run, operation, ofGet, await run.sendUnchecked(head))
    return difference === undefined ? undefined : broken(head, difference)
  })
}

function findDifference(
  { contract }: Run,
  { responses }: Operation,
  ofGet: ReceivedResponse,
  ofHead: ReceivedResponse,
): string | undefined {
  if (ofHead.status !== ofGet.status)
    return `HEAD returned ${ofHead.status}, but GET ${ofGet.status}`
  if (ofHead.text !== '') return 'HEAD has a body'
  const declared = responses.find(({ status }) => status === ofGet.status)
  // A header that the contract describes with a keyword such as x-counts-down can differ between
  // two requests.
  const constant = (declared ? listWordedHeaders(declared) : []).filter(
    (header) => !Object.keys(header).some((keyword) => keyword.startsWith('x-')),
  )
  const compared = [...constant, ...listCommonHeaders(contract)].map(({ name }) => name)
  const name = ['content-type', ...compared].find(
    (header) => ofHead.headers.get(header) !== ofGet.headers.get(header),
  )
  const format = (response: ReceivedResponse): string => response.headers.get(name ?? '') ?? 'none'
  return name && `HEAD has the ${name} ${format(ofHead)}, but GET ${format(ofGet)}`
}
