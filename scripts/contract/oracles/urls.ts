/** Oracle: a URL or a method that the contract does not have is refused. */
import type { Operation } from '../../model/operations.ts'
import { assertStatus, ContractBroken } from '../contract-broken.ts'
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

/** Checks of OPTIONS and of the methods that the path does not have. None unless the operation is
 *  the first of its path, so that each path is tested once. */
function* methodChecks(run: Run, operation: Operation, path: string): Generator<Check> {
  const ofPath = run.contract.operations.filter((other) => other.path === operation.path)
  if (ofPath[0] !== operation) return
  const documented = ofPath.map(({ method }) => method.toUpperCase())
  const allowed = [...documented, ...(documented.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort()
  for (const method of METHODS.filter((name) => !documented.includes(name)))
    yield {
      what: `the method ${method}`,
      async perform() {
        const probe = { method, path, headers: {}, key: run.target.key }
        const response = await run.sendUnchecked(probe)
        assertStatus(probe, response.status, {
          check: 'unsupported_method',
          expected: 405,
          what: method,
        })
        assertAllow(probe, response, allowed)
      },
    }
  yield {
    what: 'the method OPTIONS',
    async perform() {
      const probe = { method: 'OPTIONS', path, headers: {}, key: null }
      const response = await run.sendUnchecked(probe)
      assertStatus(probe, response.status, {
        check: 'allow_header_conformance',
        expected: 204,
        what: 'OPTIONS',
      })
      assertAllow(probe, response, allowed)
    },
  }
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
