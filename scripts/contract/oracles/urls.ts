/** Oracle: a URL or a method that the contract does not have is refused. */
import { type Operation, type OperationResponse, readResponses } from '../../model/operations.ts'
import { inlineReferences } from '../../model/references.ts'
import { assertStatus, ContractBroken, shorten } from '../contract-broken.ts'
import { assertHeaderMeanings } from '../header-meanings.ts'
import { MAX_URL_BYTES, type ReceivedResponse, type Request } from '../request.ts'
import {
  assertSameStatus,
  type Check,
  parametersIn,
  prepareRequest,
  type Run,
  UNKNOWN_ID,
  withId,
} from '../run.ts'
import { isValid } from '../values/validity.ts'
import { spellingChecks } from './spellings.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export async function* urlChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await run.records.sharedPath(operation)
  const request = await prepareRequest(run, operation, {}, path)
  const expectStatus = (what: string, at: string, expected: number): Check => ({
    what,
    async perform() {
      const probe = { ...request, path: at }
      const { status } = await run.send(operation, probe)
      assertStatus(probe, status, { check: 'negative_data_rejection', expected, what })
    },
  })
  if (operation.path.includes('{')) {
    yield expectStatus('an unknown ID', withId(operation, path, UNKNOWN_ID), 404)
    yield expectStatus('a malformed ID', withId(operation, path, 'not-a-uuid'), 404)
    yield expectStatus('an ID with NUL', withId(operation, path, '%00'), 404)
  }
  yield expectStatus('a broken percent-encoding', `${path}?x=%E0%A4%A`, 400)
  const expectSame = (what: string, at: string, usual: string): Check => ({
    what,
    perform: () =>
      assertSameStatus(
        run,
        operation,
        { usual: { ...request, path: usual }, probe: { ...request, path: at } },
        { check: 'negative_data_rejection', what },
      ),
  })
  // URL Standard, §5.1: a parameter without `=` has the empty text as its value.
  for (const name of ['x', ...parametersIn(operation, 'query').map((one) => one.name)]) {
    const at = `${path}?${encodeURIComponent(name)}`
    yield expectSame(`${name} without =`, at, `${at}=`)
  }
  if (operation.responses.some(({ status }) => status === 414)) {
    const urlOf = (bytes: number): string => `${path}?`.padEnd(bytes, 'x')
    yield expectSame('the longest URL', urlOf(MAX_URL_BYTES), `${path}?x`)
    yield expectStatus('a URL that is too long', urlOf(MAX_URL_BYTES + 1), 414)
  }
  yield* spellingChecks(run, operation, path)
  yield* methodChecks(run, operation, path)
}

/** Checks of OPTIONS, of the methods that the path does not have, and of an unknown path. None unless
 *  the operation is the first of its path, so that each path is tested once. */
function* methodChecks(run: Run, operation: Operation, path: string): Generator<Check> {
  const ofPath = run.contract.operations.filter((other) => other.path === operation.path)
  if (ofPath[0] !== operation) return
  const documented = ofPath.map(({ method }) => method.toUpperCase())
  const allowed = [...documented, ...(documented.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort()
  const others = METHODS.filter((name) => !documented.includes(name))
  const requests = [
    ...others.map((method) => ({ method, at: path, status: 405, key: run.target.key })),
    { method: 'OPTIONS', at: path, status: 204, key: null },
  ]
  if (findUnmatched(run, 404))
    requests.push({ method: 'GET', at: `${path}/no/path`, status: 404, key: run.target.key })
  for (const { method, at, status, key } of requests) {
    const what = status === 404 ? 'an unknown path' : `the method ${method}`
    const check = status === 404 ? 'negative_data_rejection' : 'unsupported_method'
    yield {
      what,
      async perform() {
        const probe = { method, path: at, headers: {}, key }
        const response = await run.sendUnchecked(probe)
        assertStatus(probe, response.status, { check, expected: status, what })
        if (status !== 404) assertAllow(probe, response, allowed)
        assertUnmatched(run, probe, response)
      },
    }
  }
}

/** A response that `x-unmatched-requests` declares. */
function findUnmatched({ contract }: Run, status: number): OperationResponse | undefined {
  const place = { source: contract.openapi, path: ['x-unmatched-requests'] }
  return readResponses(contract.sources, place).find((declared) => declared.status === status)
}

/** Throws unless the response has the headers and the body of `x-unmatched-requests`. */
function assertUnmatched(run: Run, probe: Request, response: ReceivedResponse): void {
  const { status, headers, json, text } = response
  const declared = findUnmatched(run, status)
  if (declared === undefined) return
  const { 'application/json': media } = declared.content
  const isWrong = media && !isValid(inlineReferences(run.contract.sources, media.schema), json)
  const missing = Object.values(declared.headers).find(
    ({ name, required }) => required && !headers.has(name),
  )
  const problem = missing ? `${missing.name} is missing` : isWrong && `the body is ${shorten(text)}`
  if (problem)
    throw new ContractBroken('response_schema_conformance', probe, `${status}: ${problem}`)
  assertHeaderMeanings(run.contract, declared, probe, response)
  run.tested('openapi.yaml', 'x-unmatched-requests', String(status))
}

function assertAllow(probe: Request, { headers }: ReceivedResponse, allowed: string[]): void {
  const allow = headers.get('allow') ?? ''
  if (allow.split(/, */).sort().join() !== allowed.join())
    throw new ContractBroken(
      'allow_header_conformance',
      probe,
      `Allow is "${allow}" instead of "${allowed.join(', ')}"`,
    )
}
