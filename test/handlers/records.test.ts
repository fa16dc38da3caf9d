/** What all updatable records have in common: versions, IDs, and isolation of accounts. */
import { describe, expect, test } from 'vitest'
import { type Answer, type Client, sharedApp } from '../helpers.ts'
import {
  type Body,
  errorOf,
  eventsAbout,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
  UNKNOWN_ID,
} from './new-records.ts'

const app = sharedApp()

interface Kind {
  name: string
  path: string
  event: string
  create(client: Client): Promise<Body>
  change: object
}

const kinds: Kind[] = [
  {
    name: 'Participant',
    path: '/participants',
    event: 'participant',
    create: newParticipant,
    change: { full_name: 'Grace Hopper' },
  },
  { name: 'Task', path: '/tasks', event: 'task', create: newTask, change: { title: 'Call' } },
  { name: 'Job', path: '/jobs', event: 'job', create: newJob, change: { title: 'Driver' } },
  {
    name: 'JobApplication',
    path: '/job-applications',
    event: 'job_application',
    create: newApplication,
    change: { answers: { a: 1 } },
  },
  {
    name: 'Payment',
    path: '/payments',
    event: 'payment',
    create: newPayment,
    change: { note: 'Travel costs' },
  },
]

describe.each(kinds)('$name', ({ name, path, event, create, change }) => {
  test(`create${name}, get${name}, update${name}, delete${name}: each response agrees with the next read, and each change emits one event`, async () => {
    const client = await app.newClient()
    const record = await create(client)
    const recordPath = `${path}/${record.id}`
    expect((await client.get(recordPath)).body).toEqual(record)

    const changed = await client.patch(recordPath, change)
    expect([changed.status, changed.body]).toEqual([
      200,
      { ...record, ...change, updated_at: changed.body.updated_at },
    ])
    expect(changed.body.updated_at > record.updated_at).toBe(true)
    const read = await client.get(recordPath)
    expect([read.text, read.headers.get('etag')]).toEqual([
      changed.text,
      changed.headers.get('etag'),
    ])
    expect((await client.get(path)).body.data).toEqual([changed.body])

    const deleted = await client.delete(recordPath)
    expect([deleted.status, deleted.text]).toEqual([204, ''])
    expect((await client.get(path)).body.meta.total).toBe(0)
    expect(await eventsAbout(client, record.id)).toEqual([
      `${event}.created`,
      `${event}.updated`,
      `${event}.deleted`,
    ])
  })

  test(`update${name}, delete${name}: If-Match with another or an unknown version → 412, and no change`, async () => {
    const client = await app.newClient()
    const record = await create(client)
    const recordPath = `${path}/${record.id}`
    const { headers, text } = await client.get(recordPath)
    for (const tags of ['"other"', '', ' ', ',']) {
      const stale = { 'If-Match': tags }
      expect([
        tags,
        (await client.patch(recordPath, change, stale)).status,
        (await client.delete(recordPath, stale)).status,
      ]).toEqual([tags, 412, 412])
    }
    expect((await client.get(recordPath)).text).toBe(text)
    expect(await eventsAbout(client, record.id)).toEqual([`${event}.created`])

    const current = { 'If-Match': headers.get('etag') ?? '' }
    expect((await client.patch(recordPath, change, current)).status).toBe(200)
    expect((await client.delete(recordPath, current)).status).toBe(412)
  })

  test(`get${name}, update${name}, delete${name}: an unknown ID, or one of another account → the same 404`, async () => {
    const [client, stranger] = [await app.newClient(), await app.newClient()]
    const { id } = await create(client)
    const texts = new Set<string>()
    for (const recordPath of [`${path}/${id}`, `${path}/${UNKNOWN_ID}`]) {
      for (const answer of [
        await stranger.get(recordPath),
        await stranger.patch(recordPath, change),
        await stranger.delete(recordPath),
      ]) {
        expect(answer.status).toBe(404)
        texts.add(answer.text)
      }
    }
    expect(texts.size).toBe(1)
    expect((await stranger.get(path)).body).toMatchObject({ data: [], meta: { total: 0 } })
    expect((await stranger.get('/events')).body.meta.total).toBe(0)
    expect(await eventsAbout(client, id)).toEqual([`${event}.created`])
  })

  test(`get${name}, update${name}, delete${name}: an ID in upper case or as a URN → the record`, async () => {
    const client = await app.newClient()
    const { id } = await create(client)
    expect((await client.get(`${path}/${id.toUpperCase()}`)).body.id).toBe(id)
    expect((await client.patch(`${path}/urn:uuid:${id}`, change)).body.id).toBe(id)
    expect((await client.delete(`${path}/URN:UUID:${id.toUpperCase()}`)).status).toBe(204)
  })

  test(`update${name}: an unknown field, a time or the ID → 422 on the field`, async () => {
    const client = await app.newClient()
    const { id } = await create(client)
    const body = { ...change, id: UNKNOWN_ID, created_at: '2026-03-02T09:30:00.000Z', color: 'red' }
    expect(await errorOf(client.patch(`${path}/${id}`, body))).toEqual({
      status: 422,
      fields: ['color', 'created_at', 'id'],
    })
  })
})

type ReferenceField = 'participant_id' | 'task_id' | 'job_id'

interface Reference {
  operation: string
  field: ReferenceField
  /** Returns a function that sends a valid body with an ID in the field. */
  prepare(client: Client): Promise<(id: string) => Promise<Answer>>
}

const references: Reference[] = [
  {
    operation: 'createTask',
    field: 'participant_id',
    prepare: async (client) => (id) => client.post('/tasks', { title: 'T', participant_id: id }),
  },
  {
    operation: 'updateTask',
    field: 'participant_id',
    async prepare(client) {
      const task = await newTask(client)
      return (id) => client.patch(`/tasks/${task.id}`, { participant_id: id })
    },
  },
  {
    operation: 'createJobApplication',
    field: 'participant_id',
    async prepare(client) {
      const job = await newJob(client)
      return (id) => client.post('/job-applications', { job_id: job.id, participant_id: id })
    },
  },
  {
    operation: 'createJobApplication',
    field: 'job_id',
    async prepare(client) {
      const { id: participant_id } = await newParticipant(client)
      return (id) => client.post('/job-applications', { job_id: id, participant_id })
    },
  },
  {
    operation: 'createPayment',
    field: 'participant_id',
    prepare: async (client) => (id) =>
      client.post('/payments', { participant_id: id, amount_minor: 1, currency: 'EUR' }),
  },
  {
    operation: 'createPayment',
    field: 'task_id',
    async prepare(client) {
      const { id: participant_id } = await newParticipant(client)
      const payment = { participant_id, amount_minor: 1, currency: 'EUR' }
      return (id) => client.post('/payments', { ...payment, task_id: id })
    },
  },
  {
    operation: 'updatePayment',
    field: 'task_id',
    async prepare(client) {
      const payment = await newPayment(client)
      return (id) => client.patch(`/payments/${payment.id}`, { task_id: id })
    },
  },
]
const creators = { participant_id: newParticipant, task_id: newTask, job_id: newJob }

describe.each(references)('$operation: $field', ({ field, prepare }) => {
  test('an unknown ID, or one of another account → the same 422', async () => {
    const [client, stranger] = [await app.newClient(), await app.newClient()]
    const send = await prepare(client)
    const ofStranger = await creators[field](stranger)
    const unknown = await send(UNKNOWN_ID)
    expect(unknown).toMatchObject({
      status: 422,
      body: { errors: { [field]: [expect.stringMatching(/^does not name a /)] } },
    })
    expect((await send(ofStranger.id)).text).toBe(unknown.text)
    expect(await errorOf(send('not-a-uuid'))).toEqual({ status: 422, fields: [field] })
  })

  test('an ID in upper case and as a URN → stored in lower case', async () => {
    const client = await app.newClient()
    const send = await prepare(client)
    const { id } = await creators[field](client)
    const accepted = await send(`urn:uuid:${id.toUpperCase()}`)
    expect(accepted.body[field]).toBe(id)
    const recordPath = accepted.headers.get('location')?.replace('/public/v1', '')
    if (recordPath) expect((await client.get(recordPath)).text).toBe(accepted.text)
    // An update to the same ID in another notation is no change.
    else expect((await send(id.toUpperCase())).text).toBe(accepted.text)
  })
})
