import { operations } from '../../generated/operations.ts'
import type { Operation } from '../model/operations.ts'
import { assertConforms, ContractBroken } from './checks.ts'
import type { ReceivedResponse, Request } from './request.ts'
import {
  emptyInput,
  newRequest,
  type Question,
  type Run,
  toOperationId,
  validBody,
} from './test-run.ts'

const TOO_MANY_BODY_BYTES = 1024 * 1024 + 1
const UNKNOWN_ID = '0193d7a0-0000-7000-8000-000000000000'

export async function* askKeys(run: Run, operation: Operation): AsyncGenerator<Question> {
  const { target } = run
  const id = toOperationId(operation)
  const path = await run.records.knownPath(operation)
  const valid = await validBody(run, operation)
  const request = newRequest(run, operation, emptyInput(), valid && JSON.stringify(valid), path)
  const asksFor401 = (what: string, changed: Request): Question => ({
    what,
    async ask() {
      const answer = await run.plain(changed)
      run.records.note(answer)
      if (answer.status < 400)
        throw new ContractBroken('ignored_auth', changed, `${what} got ${answer.status}`)
      run.coverage.sawStatus(id, answer.status)
      assertConforms(id, changed, answer)
      if (answer.status !== 401)
        throw new ContractBroken(
          'ignored_auth',
          changed,
          `${what} got ${answer.status}, and not 401`,
        )
    },
  })
  if (!operations[id].isPublic) {
    yield asksFor401('without a key', { ...request, key: null })
    yield asksFor401('with another key', { ...request, key: otherThan(target.key) })
    yield asksFor401('with a key of another scheme', {
      ...request,
      key: null,
      headers: { ...request.headers, Authorization: `Basic ${btoa('user:password')}` },
    })
  }
  const { restrictedKey } = target
  if (restrictedKey === undefined || !operations[id].statuses.some((status) => status === 403))
    return
  yield {
    what: 'with a key that may not do this',
    async ask() {
      const asked = {
        ...request,
        path: id === 'getExportFile' ? await pathOfPayments(run, operation) : request.path,
        key: restrictedKey,
      }
      const { status } = await run.send(id, asked)
      if (status !== 403)
        throw new ContractBroken(
          'ignored_permission',
          asked,
          `a key that may not do this got ${status}, and not 403`,
        )
    },
  }
}

/** The path of an export of payments, which needs the Finance permission. */
async function pathOfPayments(
  { contract, plain, target }: Run,
  operation: Operation,
): Promise<string> {
  const collection = operation.path.replace(/\/\{.*$/, '')
  const create = contract.operations.find(
    ({ path, method }) => path === collection && method === 'post',
  )
  const answer = await plain({
    method: 'POST',
    path: create?.path ?? collection,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ resource: 'payments', format: 'csv' }),
    key: target.key,
  })
  return operation.path.replace(/\{.*?\}/, String((answer.json as { id?: string } | undefined)?.id))
}

/** The key with another last character. */
function otherThan(key: string): string {
  return `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`
}

export async function* askAddress(run: Run, operation: Operation): AsyncGenerator<Question> {
  const id = toOperationId(operation)
  const valid = await validBody(run, operation)
  const path = await run.records.knownPath(operation)
  const request = (at: string): Request =>
    newRequest(run, operation, emptyInput(), valid && JSON.stringify(valid), at)
  const expects = (what: string, at: string, expected: number): Question => ({
    what,
    async ask() {
      const asked = request(at)
      const { status } = await run.send(id, asked)
      if (status !== expected)
        throw new ContractBroken(
          'negative_data_rejection',
          asked,
          `${what} got ${status}, and not ${expected}`,
        )
    },
  })
  if (operation.path.includes('{')) {
    for (const [what, wrong] of [
      ['an id that there is not', UNKNOWN_ID],
      ['an id that is none', 'not-a-uuid'],
      ['an id with NUL', '%00'],
    ] as const)
      yield expects(what, operation.path.replace(/\{.*?\}/, wrong), 404)
  }
  yield expects('a broken percent-encoding', `${path}?x=%E0%A4%A`, 400)
  yield* askMethods(run, operation, path)
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Only for the first operation of each path. */
function* askMethods(run: Run, operation: Operation, path: string): Generator<Question> {
  const here = run.contract.operations.filter((other) => other.path === operation.path)
  if (here[0] !== operation) return
  const documented = here.map(({ method }) => method.toUpperCase())
  const allowed = [...documented, ...(documented.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort()
  const assertAllow = (asked: Request, { headers }: ReceivedResponse): void => {
    const allow = (headers.get('allow') ?? '').split(/, */).sort()
    if (allow.join() !== allowed.join())
      throw new ContractBroken(
        'allow_header_conformance',
        asked,
        `Allow is "${headers.get('allow') ?? ''}", and must be ${allowed.join(', ')}`,
      )
  }
  for (const method of METHODS.filter((name) => !documented.includes(name)))
    yield {
      what: `the method ${method}`,
      async ask() {
        const asked = { method, path, headers: {}, key: run.target.key }
        const answer = await run.plain(asked)
        if (answer.status !== 405)
          throw new ContractBroken(
            'unsupported_method',
            asked,
            `${method} got ${answer.status}, and not 405`,
          )
        assertAllow(asked, answer)
      },
    }
  yield {
    what: 'the method OPTIONS',
    async ask() {
      const asked = { method: 'OPTIONS', path, headers: {}, key: null }
      const answer = await run.plain(asked)
      if (answer.status !== 204)
        throw new ContractBroken(
          'allow_header_conformance',
          asked,
          `OPTIONS got ${answer.status}, and not 204`,
        )
      assertAllow(asked, answer)
    },
  }
}

export async function* askBody(run: Run, operation: Operation): AsyncGenerator<Question> {
  const path = await run.records.knownPath(operation)
  const json = { 'Content-Type': 'application/json' }
  const valid = JSON.stringify(await validBody(run, operation))
  for (const [what, body, headers, expected] of [
    ['malformed JSON', '{"a": ', json, 400],
    ['no body', '', json, 400],
    ['text/plain', valid, { 'Content-Type': 'text/plain' }, 415],
    ['another charset', valid, { 'Content-Type': 'application/json; charset=utf-16' }, 415],
    ['a body that is too large', 'x'.repeat(TOO_MANY_BODY_BYTES), json, 413],
  ] as const)
    yield {
      what,
      async ask() {
        const asked = { ...newRequest(run, operation, emptyInput(), body, path), headers }
        const { status } = await run.send(toOperationId(operation), asked)
        if (status !== expected)
          throw new ContractBroken(
            'negative_data_rejection',
            asked,
            `${what} got ${status}, and not ${expected}`,
          )
      },
    }
}
