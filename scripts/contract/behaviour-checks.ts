/** Checks of versions, idempotency, created and deleted records, and events. */
import { randomUUID } from 'node:crypto'
import type { EventType } from '../../generated/asyncapi.ts'
import type { Operation } from '../model/operations.ts'
import { assertStatus, ContractBroken } from './checks.ts'
import type { Request } from './request.ts'
import {
  buildRequest,
  type Check,
  findPath,
  type Input,
  newRequest,
  type Run,
  toOperationId,
  validBody,
} from './test-run.ts'
import { limits } from './value-limits.ts'

const EVENT_PAGE_SIZE = 50

export async function* versionChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const id = toOperationId(operation)
  const path = await findPath(run, operation)
  const valid = await validBody(run, operation)
  const conditional = (header: string, value: string): Request =>
    newRequest(run, operation, path, { headers: { [header]: value }, body: valid })
  const current = async (): Promise<string> => {
    const { headers } = await run.plain({ method: 'GET', path, headers: {}, key: run.target.key })
    return headers.get('etag') ?? ''
  }
  /** Again when the service itself has changed the record in between, as it does with an unfinished export. */
  const sendCurrent = async (): Promise<{ probe: Request; status: number }> => {
    const etag = await current()
    const probe = conditional('If-Match', etag)
    const { status } = await run.send(id, probe)
    return status === 412 && (await current()) !== etag ? sendCurrent() : { probe, status }
  }
  const expectStatus = (
    what: string,
    request: () => Promise<Request>,
    expected: number,
  ): Check => ({
    what,
    async perform() {
      const probe = await request()
      const { status } = await run.send(id, probe)
      assertStatus(probe, status, { check: 'conditional_request', expected, what })
    },
  })
  if (operation.method === 'get') {
    yield expectStatus(
      'the current version',
      async () => conditional('If-None-Match', await current()),
      304,
    )
    yield expectStatus(
      'another version',
      async () => conditional('If-None-Match', '"another"'),
      operation.success.status,
    )
    return
  }
  // One check: the second request changes or deletes the record.
  yield {
    what: 'If-Match',
    async perform() {
      await expectStatus(
        'another version',
        async () => conditional('If-Match', '"another"'),
        412,
      ).perform()
      const { probe, status } = await sendCurrent()
      assertStatus(probe, status, {
        check: 'conditional_request',
        expected: operation.success.status,
        what: 'the current version',
      })
    },
  }
}

export async function* idempotencyChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const id = toOperationId(operation)
  yield {
    what: 'the same request again',
    async perform() {
      const request = newRequest(run, operation, await findPath(run, operation), {
        headers: { 'Idempotency-Key': randomUUID() },
        body: await validBody(run, operation),
      })
      const [first, again] = [await run.send(id, request), await run.send(id, request)]
      if (again.status !== first.status || again.text !== first.text)
        throw new ContractBroken(
          'idempotency',
          request,
          `the same request returned ${again.status} and another body the second time`,
        )
      if (again.headers.get('idempotent-replayed') !== 'true')
        throw new ContractBroken(
          'idempotency',
          request,
          'the replayed response has no Idempotent-Replayed: true',
        )
      const other = { ...request, body: `${request.body} ` }
      const { status } = await run.send(id, other)
      assertStatus(other, status, {
        check: 'idempotency',
        expected: 422,
        what: 'another request with a used Idempotency-Key',
      })
    },
  }
}

/** The operations on one record of the collection. */
function itemOperations({ contract }: Run, collection: string): Operation[] {
  return contract.operations.filter(
    ({ path }) => path.startsWith(`${collection}/{`) && path.endsWith('}'),
  )
}

export async function* creationChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  yield {
    what: 'GET of its Location',
    async perform() {
      const created = await run.send(
        toOperationId(operation),
        await buildRequest(run, operation, { body: await validBody(run, operation) }),
      )
      const get = itemOperations(run, operation.path).find(({ method }) => method === 'get')
      if (get === undefined) return
      const probe = newRequest(run, get, created.headers.get('location') ?? '')
      const { status, json } = await run.send(toOperationId(get), probe)
      assertStatus(probe, status, {
        check: 'ensure_resource_availability',
        expected: 200,
        what: 'GET of the created record',
      })
      const [createdRecord, read] = [created.json, json] as { id?: string }[]
      if (createdRecord?.id !== read?.id)
        throw new ContractBroken(
          'ensure_resource_availability',
          probe,
          `GET returned the ID ${read?.id} instead of ${createdRecord?.id}`,
        )
    },
  }
}

export async function* deletionChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await findPath(run, operation)
  yield {
    what: 'the deleted record',
    async perform() {
      const request = newRequest(run, operation, path)
      const { status } = await run.send(toOperationId(operation), request)
      assertStatus(request, status, { check: 'use_after_delete', expected: 204, what: 'DELETE' })
      for (const other of run.contract.operations.filter(
        (candidate) => candidate.path === operation.path,
      )) {
        const probe = newRequest(run, other, path, { body: await validBody(run, other) })
        const after = await run.send(toOperationId(other), probe)
        assertStatus(probe, after.status, {
          check: 'use_after_delete',
          expected: 404,
          what: 'a request for the deleted record',
        })
      }
    },
  }
}

interface ListedEvent {
  id: string
  event_type: EventType
}

/** Calls the operation with each input until all its events have occurred. */
export async function* eventChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const schema = run.records.inlineSchema(operation)
  const inputs =
    schema === null ? [undefined] : limits(schema).map(({ value }) => value as Input['body'])
  for (const body of inputs) {
    if (run.coverage.hasSeenEvents(toOperationId(operation))) return
    yield { what: 'its events', perform: () => callAndListen(run, operation, body) }
  }
}

async function callAndListen(run: Run, operation: Operation, body: Input['body']): Promise<void> {
  const { contract, coverage, options, records, target } = run
  const id = toOperationId(operation)
  const path = await records.newPath(operation)
  const kind = /\{([^}]+)\}$/.exec(operation.path)?.[1]
  if (operation.method === 'delete' && kind !== undefined)
    await records.addDependents(kind, path.split('/').at(-1) ?? '')
  const request = await buildRequest(run, operation, { body }, path)
  const latest = async (): Promise<ListedEvent[]> => {
    const list = `/public/v1/events?sort=-created_at&page[size]=${EVENT_PAGE_SIZE}`
    const { json } = await run.plain({ method: 'GET', path: list, headers: {}, key: target.key })
    return (json as { data?: ListedEvent[] } | undefined)?.data ?? []
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
