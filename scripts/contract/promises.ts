/** What the contract says beyond schemas: keys, addresses, methods, versions, repeats, the life of a record, events. */
import { randomUUID } from 'node:crypto'
import type { EventType } from '../../generated/asyncapi.ts'
import { operations } from '../../generated/operations.ts'
import type { Operation } from '../model/operations.ts'
import { assertConforms, ContractBroken } from './checks.ts'
import type { Answer, Request } from './request.ts'
import {
  emptyInput,
  type Input,
  idOf,
  newRequest,
  pathOf,
  type Question,
  type Run,
  requestFor,
  validBody,
} from './run.ts'
import { limits } from './values.ts'

const MORE_THAN_A_BODY_MAY_HAVE = 1024 * 1024 + 1
const NO_ID = '0193d7a0-0000-7000-8000-000000000000'
const EVENTS_AT_ONCE = 50

export async function* askKeys(run: Run, operation: Operation): AsyncGenerator<Question> {
  const { target } = run
  const id = idOf(operation)
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

/** The file of an export of payments, which is for those with the Finance permission alone. */
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

/** Of the same form, with another last character. */
function otherThan(key: string): string {
  return `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`
}

export async function* askAddress(run: Run, operation: Operation): AsyncGenerator<Question> {
  const id = idOf(operation)
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
      ['an id that there is not', NO_ID],
      ['an id that is none', 'not-a-uuid'],
      ['an id with NUL', '%00'],
    ] as const)
      yield expects(what, operation.path.replace(/\{.*?\}/, wrong), 404)
  }
  yield expects('a broken percent-encoding', `${path}?x=%E0%A4%A`, 400)
  yield* askMethods(run, operation, path)
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Of each path, with its first operation. */
function* askMethods(run: Run, operation: Operation, path: string): Generator<Question> {
  const here = run.contract.operations.filter((other) => other.path === operation.path)
  if (here[0] !== operation) return
  const documented = here.map(({ method }) => method.toUpperCase())
  const allowed = [...documented, ...(documented.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort()
  const assertAllow = (asked: Request, { headers }: Answer): void => {
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
    ['a body that is too large', 'x'.repeat(MORE_THAN_A_BODY_MAY_HAVE), json, 413],
  ] as const)
    yield {
      what,
      async ask() {
        const asked = { ...newRequest(run, operation, emptyInput(), body, path), headers }
        const { status } = await run.send(idOf(operation), asked)
        if (status !== expected)
          throw new ContractBroken(
            'negative_data_rejection',
            asked,
            `${what} got ${status}, and not ${expected}`,
          )
      },
    }
}

export async function* askVersions(run: Run, operation: Operation): AsyncGenerator<Question> {
  const id = idOf(operation)
  const path = await pathOf(run, operation)
  const valid = await validBody(run, operation)
  const conditional = (header: string, value: string): Request =>
    newRequest(
      run,
      operation,
      { ...emptyInput(), headers: { [header]: value } },
      valid && JSON.stringify(valid),
      path,
    )
  const current = async (): Promise<string> => {
    const { headers } = await run.plain({ method: 'GET', path, headers: {}, key: run.target.key })
    return headers.get('etag') ?? ''
  }
  const expects = (what: string, request: () => Promise<Request>, expected: number): Question => ({
    what,
    async ask() {
      const asked = await request()
      const { status } = await run.send(id, asked)
      if (status !== expected)
        throw new ContractBroken(
          'conditional_request',
          asked,
          `${what} got ${status}, and not ${expected}`,
        )
    },
  })
  if (operation.method === 'get') {
    yield expects(
      'the version that we have',
      async () => conditional('If-None-Match', await current()),
      304,
    )
    yield expects(
      'another version',
      async () => conditional('If-None-Match', '"another"'),
      operation.success.status,
    )
    return
  }
  // One question: the record is gone, or changed, after it.
  yield {
    what: 'If-Match',
    async ask() {
      await expects('another version', async () => conditional('If-Match', '"another"'), 412).ask()
      await expects(
        'this version',
        async () => conditional('If-Match', await current()),
        operation.success.status,
      ).ask()
    },
  }
}

export async function* askRepeats(run: Run, operation: Operation): AsyncGenerator<Question> {
  const id = idOf(operation)
  yield {
    what: 'the same request again',
    async ask() {
      const valid = await validBody(run, operation)
      const input = { ...emptyInput(), headers: { 'Idempotency-Key': randomUUID() } }
      const request = newRequest(
        run,
        operation,
        input,
        JSON.stringify(valid),
        await pathOf(run, operation),
      )
      const [first, again] = [await run.send(id, request), await run.send(id, request)]
      if (again.status !== first.status || again.text !== first.text)
        throw new ContractBroken(
          'idempotency',
          request,
          `the same request got ${again.status} and another body the second time`,
        )
      if (again.headers.get('idempotent-replayed') !== 'true')
        throw new ContractBroken(
          'idempotency',
          request,
          'the answer that came again has no Idempotent-Replayed: true',
        )
      const other = { ...request, body: `${request.body} ` }
      const { status } = await run.send(id, other)
      if (status !== 422)
        throw new ContractBroken(
          'idempotency',
          other,
          `another request with a used key got ${status}, and not 422`,
        )
    },
  }
}

/** Every operation on one record of the kind that `collection` lists. */
function itemOperations({ contract }: Run, collection: string): Operation[] {
  return contract.operations.filter(
    ({ path }) => path.startsWith(`${collection}/{`) && path.endsWith('}'),
  )
}

export async function* askCreated(run: Run, operation: Operation): AsyncGenerator<Question> {
  yield {
    what: 'GET of its Location',
    async ask() {
      const created = await run.send(
        idOf(operation),
        await requestFor(run, operation, {
          ...emptyInput(),
          body: await validBody(run, operation),
        }),
      )
      const get = itemOperations(run, operation.path).find(({ method }) => method === 'get')
      if (get === undefined) return
      const asked = newRequest(
        run,
        get,
        emptyInput(),
        undefined,
        created.headers.get('location') ?? '',
      )
      const { status, json } = await run.send(idOf(get), asked)
      if (status !== 200)
        throw new ContractBroken(
          'ensure_resource_availability',
          asked,
          `what was just made got ${status}, and not 200`,
        )
      const [made, read] = [created.json, json] as { id?: string }[]
      if (made?.id !== read?.id)
        throw new ContractBroken(
          'ensure_resource_availability',
          asked,
          `${read?.id} is not what was made: ${made?.id}`,
        )
    },
  }
}

export async function* askDeleted(run: Run, operation: Operation): AsyncGenerator<Question> {
  const path = await pathOf(run, operation)
  yield {
    what: 'what is gone',
    async ask() {
      const request = newRequest(run, operation, emptyInput(), undefined, path)
      const { status } = await run.send(idOf(operation), request)
      if (status !== 204)
        throw new ContractBroken('use_after_delete', request, `deleting got ${status}, and not 204`)
      for (const other of run.contract.operations.filter(
        (candidate) => candidate.path === operation.path,
      )) {
        const valid = await validBody(run, other)
        const asked = newRequest(run, other, emptyInput(), valid && JSON.stringify(valid), path)
        const after = await run.send(idOf(other), asked)
        if (after.status !== 404)
          throw new ContractBroken(
            'use_after_delete',
            asked,
            `after its deletion got ${after.status}, and not 404`,
          )
      }
    },
  }
}

interface ListedEvent {
  id: string
  event_type: EventType
}

/** Each way to call the operation, until all of its events were there. */
export async function* askEvents(run: Run, operation: Operation): AsyncGenerator<Question> {
  const schema = run.records.schemaOf(operation)
  const inputs =
    schema === null ? [undefined] : limits(schema).map(({ value }) => value as Input['body'])
  for (const body of inputs) {
    if (run.coverage.hasSeenEvents(idOf(operation))) return
    yield { what: 'its events', ask: () => callAndListen(run, operation, body) }
  }
}

async function callAndListen(run: Run, operation: Operation, body: Input['body']): Promise<void> {
  const { contract, coverage, options, records, target } = run
  const id = idOf(operation)
  const path = await records.newPath(operation)
  const kind = /\{([^}]+)\}$/.exec(operation.path)?.[1]
  if (operation.method === 'delete' && kind !== undefined)
    await records.addDependents(kind, path.split('/').at(-1) ?? '')
  const request = await requestFor(run, operation, { ...emptyInput(), body }, path)
  const latest = async (): Promise<ListedEvent[]> => {
    const list = `/public/v1/events?${new URLSearchParams({ sort: '-created_at', 'page[size]': String(EVENTS_AT_ONCE) })}`
    return (
      (
        (await run.plain({ method: 'GET', path: list, headers: {}, key: target.key })).json as {
          data?: ListedEvent[]
        }
      )?.data ?? []
    )
  }
  const known = new Set((await latest()).map((event) => event.id))
  await run.send(id, request)
  const emitted = (await latest())
    .filter((event) => !known.has(event.id))
    .map((event) => event.event_type)
  const declared: readonly string[] = operation.emits
  const bySystem = ((contract.openapi as { 'x-emitted-by-system'?: string[] })[
    'x-emitted-by-system'
  ] ?? []) as string[]
  const undeclared = emitted.filter((type) => !declared.includes(type) && !bySystem.includes(type))
  if (undeclared.length > 0)
    throw new ContractBroken(
      'emitted_events',
      request,
      `emitted ${undeclared.join(', ')}, which it does not declare`,
    )
  if (options.ids.includes(id))
    for (const type of emitted.filter((event) => declared.includes(event)))
      coverage.sawEvent(id, type)
}
