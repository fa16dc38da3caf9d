/** An operation emits exactly the events that its `x-emits` declares, and deliveries have the
 *  bodies of the examples in asyncapi.yaml. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import asyncapi from '../../generated/asyncapi.json' with { type: 'json' }
import type { OperationalType } from '../../generated/asyncapi.ts'
import { eventTypes, operationalTypes } from '../../generated/events.ts'
import openapi from '../../generated/openapi.json' with { type: 'json' }
import { type OperationId, operations } from '../../generated/operations.ts'
import { resources } from '../../generated/resources.ts'
import { events as validators } from '../../generated/validators.js'
import { accountTransaction, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { emitTest } from '../../webhooks/emit.ts'
import { notify } from '../../webhooks/notices.ts'
import { newCompleteExport, requestExport, writeFile } from '../handlers/export-helpers.ts'
import { importFile } from '../handlers/import-helpers.ts'
import { expectSuccess, operationExample } from '../handlers/new-records.ts'
import { type Answer, type Client, operationIds, pathOf, sharedApp } from '../helpers.ts'
import { fixtureFor, sendCreate } from '../resources.ts'
import { subscribe } from './subscribe.ts'

const app = sharedApp()

/** Prepares what the operation needs. Returns a function that sends the request which emits all
 *  declared events. */
async function prepare(client: Client, id: OperationId): Promise<() => Promise<Answer>> {
  const { method } = operations[id]
  const resource = resources.find(
    ({ operations, slug }) => Object.values(operations).includes(id) || pathOf(id) === `/${slug}`,
  )
  if (resource === undefined) throw new Error(`${id} belongs to no resource of the contract`)
  const fixture = fixtureFor(resource)
  const body = await fixture.newBody(client)
  const create = (): Promise<Answer> => sendCreate(client, resource, body)
  if (method === 'post') return create

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

// test/handlers/batch.test.ts tests the events of batches.
const emitters = operationIds.filter(
  (id) => operations[id].emits.length > 0 && operations[id].batch === null,
)
test.each(emitters)('%s emits what it declares, and nothing else', async (id) => {
  const client = await app.newClient()
  const send = await prepare(client, id)
  const before = await listEvents(client)
  expect((await send()).status).toBe(operations[id].success)
  const emitted = [...(await listEvents(client))].filter(([eventId]) => !before.has(eventId))
  expect(emitted.map(([, type]) => type).sort()).toEqual([...operations[id].emits].sort())
})

const updates = resources.flatMap((resource) => resource.operations.update ?? [])
test.each(updates)('%s that changes nothing emits nothing and keeps the version', async (id) => {
  const client = await app.newClient()
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
})

test('every event type is emitted by an operation or by the system', () => {
  const declared = new Set(operationIds.flatMap((id) => [...operations[id].emits]))
  const system = ['export.completed', 'export.failed', 'import.completed', 'import.failed']
  expect([...declared, ...system].sort()).toEqual(Object.keys(eventTypes).sort())
})

test('only operational types and webhook.test are in asyncapi.yaml, but not in the list of event types', async () => {
  const unlisted = Object.keys(validators).filter((type) => !Object.hasOwn(eventTypes, type))
  expect(unlisted).toEqual([...Object.keys(operationalTypes), 'webhook.test'])
  const { body } = await (await app.newClient()).get('/event-types?page[size]=100')
  expect(body.data.map(({ name }: { name: string }) => name)).toEqual(Object.keys(eventTypes))
})

describe('the examples of asyncapi.yaml', () => {
  const { messages } = asyncapi.components
  const examples = Object.values(messages).map(({ name, examples: [example] }) => ({
    name: name as keyof typeof validators,
    payload: example?.payload as Payload,
  }))

  interface Payload {
    resource: { type: string; id: string }
    data: unknown
  }

  /** The text with each ID, and the outcome of a screening, replaced by its kind. */
  function shapeOf(text: string): string {
    return text
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
      .replace(/"screening_outcome":("\w+"|null)/, '"screening_outcome":<outcome>')
  }

  test.each(examples)('$name: valid', ({ name, payload }) => {
    expect(validators[name].payload(payload) ? [] : validators[name].payload.errors).toEqual([])
  })

  test('have the IDs of the examples of openapi.yaml', () => {
    const { responses } = openapi.components
    const records: Record<string, { id: string }> = {
      participant: responses.Participant.content['application/json'].example,
      task: responses.Task.content['application/json'].example,
      job: responses.Job.content['application/json'].example,
      job_application: responses.JobApplication.content['application/json'].example,
      payment: responses.Payment.content['application/json'].example,
      export: responses.Export.content['application/json'].example,
    }
    for (const [type, { id }] of Object.entries(records)) {
      const ofType = examples.filter(({ payload }) => payload.resource.type === type)
      expect(ofType.length, type).toBeGreaterThan(0)
      for (const { name, payload } of ofType) expect(payload.resource.id, name).toBe(id)
    }
    const { event_type, resource, data, delivery_ids } =
      responses.Event.content['application/json'].example
    const [id] = delivery_ids
    const { payload } = examples.find(({ name }) => name === event_type) ?? {}
    expect(payload).toEqual({ id, event_type, resource, data })
  })

  test('are the bodies of deliveries, byte by byte, except for the IDs and the outcome', async () => {
    const bodies = await deliverEachType()
    expect([...bodies.keys()].sort()).toEqual(examples.map(({ name }) => name).sort())
    for (const { name, payload } of examples)
      expect(shapeOf(bodies.get(name) ?? '')).toBe(shapeOf(JSON.stringify(payload)))
  })

  /** Causes each type of delivery. Returns the stored body by type. */
  async function deliverEachType(): Promise<Map<string, string>> {
    for (const id of emitters) {
      const { client } = await newSubscriber()
      await expectSuccess((await prepare(client, id))())
    }
    const { client, accountId, webhookId } = await newSubscriber()
    await newCompleteExport(app, client, { resource: 'tasks' })
    const failing = await requestExport(client, { resource: 'tasks' })
    await app.db.write('exports').where({ id: failing }).update({ tries: 3 })
    await writeFile(app, failing)
    await importFile(app, client, 'mode=create', 'full_name\r\nAda\r\n')
    await importFile(app, client, 'mode=create', 'not_a_field\r\n1\r\n')
    await transaction(app.db, (trx) => emitTest(writeScope(trx, accountId), webhookId, new Date()))
    await tellEachNotice()
    const rows: { event_type: string; body: Buffer }[] = await app.db.read('deliveries')
    return new Map(rows.map(({ event_type, body }) => [event_type, body.toString()]))
  }

  /** With the texts of the examples. */
  async function tellEachNotice(): Promise<void> {
    const account = await app.newAccount()
    const url = 'https://hooks.example.com/'
    const webhook = { url, event_types: Object.keys(operationalTypes) }
    await expectSuccess(app.as(account).post('/webhooks', webhook))
    for (const type of Object.keys(operationalTypes) as OperationalType[]) {
      const data = examples.find(({ name }) => name === type)?.payload.data
      const notice = { type, resourceId: randomUUID(), text: (data as { text: string }).text }
      await accountTransaction(app.db, account.accountId, (scope) =>
        notify(scope, notice, new Date()),
      )
    }
  }

  /** An account with a webhook. */
  async function newSubscriber() {
    const account = await app.newAccount()
    const webhookId = await subscribe(app, account, 'https://hooks.example.com/')
    return { client: app.as(account), accountId: account.accountId, webhookId }
  }
})
