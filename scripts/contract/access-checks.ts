import type { Operation } from '../model/operations.ts'
import { readWord } from '../words/read.ts'
import { assertConforms, assertStatus, ContractBroken } from './checks.ts'
import type { ReceivedResponse, Request } from './request.ts'
import { type Check, newRequest, type Run, validBody, withId } from './test-run.ts'

const TOO_MANY_BODY_BYTES = 1024 * 1024 + 1
export const UNKNOWN_ID = '019cade2-11c0-7000-8000-000000000000'

export async function* keyChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { target } = run
  const id = operation.id
  const path = await run.records.knownPath(operation)
  const valid = await validBody(run, operation)
  const request = newRequest(run, operation, path, { body: valid })
  const expect401 = (what: string, changed: Request): Check => ({
    what,
    async perform() {
      const response = await run.plain(changed)
      run.records.note(response)
      if (response.status < 400)
        throw new ContractBroken('ignored_auth', changed, `${what} returned ${response.status}`)
      run.coverage.sawStatus(id, response.status)
      assertConforms(run.validators, id, changed, response)
      assertStatus(changed, response.status, { check: 'ignored_auth', expected: 401, what })
    },
  })
  if (!operation.isPublic) {
    yield expect401('without a key', { ...request, key: null })
    yield expect401('with another key', { ...request, key: changeKey(target.key) })
    yield expect401('with a key of another scheme', {
      ...request,
      key: null,
      headers: { ...request.headers, Authorization: `Basic ${btoa('user:password')}` },
    })
  }
  const { restrictedKey } = target
  if (restrictedKey === undefined) return
  if (!operation.responses.some(({ status }) => status === 403)) {
    yield {
      what: 'with a Read Only key',
      async perform() {
        const probe = { ...request, key: restrictedKey }
        const { status } = await run.send(id, probe)
        assertStatus(probe, status, {
          check: 'ignored_permission',
          expected: operation.success.status,
          what: 'a Read Only key',
        })
      },
    }
    return
  }
  yield {
    what: 'with a key without the permission',
    async perform() {
      const probe = {
        ...request,
        path: await forbiddenPath(run, operation, request.path),
        key: restrictedKey,
      }
      const { status } = await run.send(id, probe)
      assertStatus(probe, status, {
        check: 'ignored_permission',
        expected: 403,
        what: 'a key without the permission',
      })
    },
  }
}

/** The path of a new record with these values, or of the known record. */
async function forbiddenPath(run: Run, operation: Operation, path: string): Promise<string> {
  const values = readWord<Record<string, unknown>>(operation.place, 'x-forbidden-with')
  return values ? run.records.newPath(operation, values) : path
}

/** Changes the last character of the key. */
function changeKey(key: string): string {
  return `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`
}

export async function* urlChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const id = operation.id
  const valid = await validBody(run, operation)
  const path = await run.records.knownPath(operation)
  const request = (at: string): Request => newRequest(run, operation, at, { body: valid })
  const expectStatus = (what: string, at: string, expected: number): Check => ({
    what,
    async perform() {
      const probe = request(at)
      const { status } = await run.send(id, probe)
      assertStatus(probe, status, { check: 'negative_data_rejection', expected, what })
    },
  })
  if (operation.path.includes('{')) {
    for (const [what, wrong] of [
      ['an unknown ID', UNKNOWN_ID],
      ['a malformed ID', 'not-a-uuid'],
      ['an ID with NUL', '%00'],
    ] as const)
      yield expectStatus(what, withId(operation, path, wrong), 404)
  }
  yield expectStatus('a broken percent-encoding', `${path}?x=%E0%A4%A`, 400)
  if (operation.responses.some(({ status }) => status === 414))
    yield expectStatus('a long URL', `${path}?${'x'.repeat(LONG_URL_CHARACTERS)}`, 414)
  yield* methodChecks(run, operation, path)
}

/** More than servers commonly accept in a URL. The default limit of Node for all headers is 16
 *  KiB. */
const LONG_URL_CHARACTERS = 9000

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Only for the first operation of each path. */
function* methodChecks(run: Run, operation: Operation, path: string): Generator<Check> {
  const here = run.contract.operations.filter((other) => other.path === operation.path)
  if (here[0] !== operation) return
  const documented = here.map(({ method }) => method.toUpperCase())
  const allowed = [...documented, ...(documented.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort()
  const assertAllow = (probe: Request, { headers }: ReceivedResponse): void => {
    const allow = (headers.get('allow') ?? '').split(/, */).sort()
    if (allow.join() !== allowed.join())
      throw new ContractBroken(
        'allow_header_conformance',
        probe,
        `Allow is "${headers.get('allow') ?? ''}" instead of "${allowed.join(', ')}"`,
      )
  }
  for (const method of METHODS.filter((name) => !documented.includes(name)))
    yield {
      what: `the method ${method}`,
      async perform() {
        const probe = { method, path, headers: {}, key: run.target.key }
        const response = await run.plain(probe)
        assertStatus(probe, response.status, {
          check: 'unsupported_method',
          expected: 405,
          what: method,
        })
        assertAllow(probe, response)
      },
    }
  yield {
    what: 'the method OPTIONS',
    async perform() {
      const probe = { method: 'OPTIONS', path, headers: {}, key: null }
      const response = await run.plain(probe)
      assertStatus(probe, response.status, {
        check: 'allow_header_conformance',
        expected: 204,
        what: 'OPTIONS',
      })
      assertAllow(probe, response)
    },
  }
}

export async function* bodyChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await run.records.knownPath(operation)
  const json = { 'Content-Type': 'application/json' }
  const valid = JSON.stringify(await validBody(run, operation))
  for (const [what, body, headers, expected] of [
    ['malformed JSON', '{"a": ', json, 400],
    ['no body', '', json, 400],
    ['text/plain', valid, { 'Content-Type': 'text/plain' }, 415],
    ['text/json', valid, { 'Content-Type': 'text/json' }, 415],
    ['another charset', valid, { 'Content-Type': 'application/json; charset=utf-16' }, 415],
    ['an oversized body', 'x'.repeat(TOO_MANY_BODY_BYTES), json, 413],
  ] as const)
    yield {
      what,
      async perform() {
        const probe = { ...newRequest(run, operation, path), body, headers }
        const { status } = await run.send(operation.id, probe)
        assertStatus(probe, status, { check: 'negative_data_rejection', expected, what })
      },
    }
}
