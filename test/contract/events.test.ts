/** An operation emits exactly the events that its `x-emits` declares. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { type OperationId, operations } from '../../generated/operations.ts'
import { resources } from '../../generated/resources.ts'
import { events as validators } from '../../generated/validators.js'
import { expectSuccess, operationExample } from '../handlers/new-records.ts'
import { type Answer, type Client, operationIds, startApp, type TestApp } from '../helpers.ts'
import { fixtureFor } from '../resources.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app[Symbol.asyncDispose]())

/** Prepares what the operation needs. Returns a function that sends the request which emits all declared events. */
async function prepare(client: Client, id: OperationId): Promise<() => Promise<Answer>> {
  const resource = resources.find(({ operations }) => Object.values(operations).includes(id))
  if (resource === undefined) throw new Error(`${id} belongs to no resource of the contract`)
  const fixture = fixtureFor(resource)
  const body = await fixture.newBody(client)
  const create = (): Promise<Answer> => client.post(`/${resource.slug}`, body)
  if (id === resource.operations.create) return create

  const { id: recordId } = await expectSuccess(create())
  const path = `/${resource.slug}/${recordId}`
  if (id === resource.operations.update)
    return () => client.patch(path, operationExample(operations[id]))
  expect(id).toBe(resource.operations.delete)
  await fixture.addReference?.(client, recordId)
  return () => client.delete(path)
}

/** Event type by event ID. */
async function listEvents(client: Client): Promise<Map<string, string>> {
  const { body } = await client.get('/events?page[size]=100')
  return new Map(
    body.data.map((event: { id: string; event_type: string }) => [event.id, event.event_type]),
  )
}

test.each(operationIds.filter((id) => operations[id].emits.length > 0))(
  '%s emits what it declares, and nothing else',
  async (id) => {
    const client = app.as(await app.newAccount())
    const operate = await prepare(client, id)
    const before = await listEvents(client)
    const answer = await operate()
    expect(answer.status).toBe(operations[id].success)
    const emitted = [...(await listEvents(client))].filter(([eventId]) => !before.has(eventId))
    expect(emitted.map(([, type]) => type).sort()).toEqual([...operations[id].emits].sort())
  },
)

test.each(operationIds.filter((id) => operations[id].method === 'patch'))(
  '%s that changes nothing emits nothing and keeps the version',
  async (id) => {
    const client = app.as(await app.newAccount())
    const resource = resources.find(({ operations }) => operations.update === id)
    const create = await prepare(client, resource?.operations.create as OperationId)
    const response = await create()
    const path = response.headers.get('location')?.replace('/public/v1', '') ?? ''
    const before = await listEvents(client)
    const { status } = response.body
    for (const body of [{}, { status }]) {
      const answer = await client.patch(path, body)
      expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([
        200,
        response.text,
        response.headers.get('etag'),
      ])
    }
    expect(await listEvents(client)).toEqual(before)
  },
)

test('every event type is emitted by an operation or by the system', () => {
  const declared = new Set(operationIds.flatMap((id) => [...operations[id].emits]))
  const system = ['export.completed', 'export.failed']
  expect([...declared, ...system].sort()).toEqual(Object.keys(eventTypes).sort())
})

test('webhook.test is no event type: no webhook subscribes to it and no operation emits it', async () => {
  const sentOnRequest = Object.keys(validators).filter((type) => !Object.hasOwn(eventTypes, type))
  expect(sentOnRequest).toEqual(['webhook.test'])
  const { body } = await app.as(await app.newAccount()).get('/event-types?page[size]=100')
  expect(body.data.map(({ name }: { name: string }) => name)).toEqual(Object.keys(eventTypes))
})

test.each(Object.values(eventTypes))('the example of $name is valid', ({ name, example }) => {
  expect(validators[name].payload(example) ? [] : validators[name].payload.errors).toEqual([])
})
