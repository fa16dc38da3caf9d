/** Oracle: a URL or a method that the contract does not have is refused. */
import type { Operation } from '../../model/operations.ts'
import { assertStatus, ContractBroken } from '../contract-broken.ts'
import { LONG_URL_CHARACTERS, type ReceivedResponse, type Request } from '../request.ts'
import { type Check, prepareRequest, type Run, UNKNOWN_ID, withId } from '../run.ts'

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
  if (operation.responses.some(({ status }) => status === 414))
    yield expectStatus('a long URL', `${path}?${'x'.repeat(LONG_URL_CHARACTERS)}`, 414)
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
