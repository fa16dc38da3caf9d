/** Checks of versions, idempotency, created and deleted records, and events. */
import { randomUUID } from 'node:crypto'
import type { EventType } from '../../generated/asyncapi.ts'
import type { Operation } from '../model/operations.ts'
import { ContractBroken } from './checks.ts'
import type { Request } from './request.ts'
import {
  emptyInput,
  type Input,
  newRequest,
  pathOf,
  type Question,
  type Run,
  requestFor,
  toOperationId,
  validBody,
} from './test-run.ts'
import { limits } from './value-limits.ts'

const EVENT_PAGE_SIZE = 50

export async function* askVersions(run: Run, operation: Operation): AsyncGenerator<Question> {
  const id = toOperationId(operation)
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
  // One check: the second request changes or deletes the record.
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
  const id = toOperationId(operation)
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

/** The operations on one record of the collection. */
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
        toOperationId(operation),
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
      const { status, json } = await run.send(toOperationId(get), asked)
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
      const { status } = await run.send(toOperationId(operation), request)
      if (status !== 204)
        throw new ContractBroken('use_after_delete', request, `deleting got ${status}, and not 204`)
      for (const other of run.contract.operations.filter(
        (candidate) => candidate.path === operation.path,
      )) {
        const valid = await validBody(run, other)
        const asked = newRequest(run, other, emptyInput(), valid && JSON.stringify(valid), path)
        const after = await run.send(toOperationId(other), asked)
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

/** Calls the operation with each input until all its events have occurred. */
export async function* askEvents(run: Run, operation: Operation): AsyncGenerator<Question> {
  const schema = run.records.schemaOf(operation)
  const inputs =
    schema === null ? [undefined] : limits(schema).map(({ value }) => value as Input['body'])
  for (const body of inputs) {
    if (run.coverage.hasSeenEvents(toOperationId(operation))) return
    yield { what: 'its events', ask: () => callAndListen(run, operation, body) }
  }
}

async function callAndListen(run: Run, operation: Operation, body: Input['body']): Promise<void> {
  const { contract, coverage, options, records, target } = run
  const id = toOperationId(operation)
  const path = await records.newPath(operation)
  const kind = /\{([^}]+)\}$/.exec(operation.path)?.[1]
  if (operation.method === 'delete' && kind !== undefined)
    await records.addDependents(kind, path.split('/').at(-1) ?? '')
  const request = await requestFor(run, operation, { ...emptyInput(), body }, path)
  const latest = async (): Promise<ListedEvent[]> => {
    const list = `/public/v1/events?${new URLSearchParams({ sort: '-created_at', 'page[size]': String(EVENT_PAGE_SIZE) })}`
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
  const undeclared = emitted.filter(
    (type) => !declared.includes(type) && !contract.emittedBySystem.includes(type),
  )
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
