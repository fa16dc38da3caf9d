/** `changes` and `actor` of single events. */
import { describe, expect, test } from 'vitest'
import type { Client } from '../helpers.ts'
import { sharedApp } from '../helpers.ts'
import {
  type Body,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
} from './new-records.ts'

const app = sharedApp()

/** The events of a record with what only `getEvent` returns, oldest first. */
async function readEvents(client: Client, id: string): Promise<Body[]> {
  const { data } = (await client.get(`/events?filter[resource_id]=${id}`)).body
  return Promise.all(
    data.map(async (event: Body) => (await client.get(`/events/${event.id}`)).body),
  )
}

const changesOf = async (client: Client, id: string): Promise<unknown[]> =>
  (await readEvents(client, id)).map(({ event_type, changes }) => [event_type, changes])

const time = expect.stringMatching(/^20.+Z$/)

interface Update {
  path: string
  create(client: Client): Promise<Body>
  body: object
  /** The events after that of the creation. */
  events: [type: string, changes: object[] | null][]
}

const UPDATES: Update[] = [
  {
    path: '/participants',
    create: (client) => newParticipant(client, { email: 'ada@example.com', tags: ['one'] }),
    body: { email: 'Ada@Example.org', tags: [], full_name: 'Ada Lovelace' },
    events: [
      [
        'participant.updated',
        [
          { field: 'email', before: 'ada@example.com', after: 'Ada@Example.org' },
          { field: 'tags', before: ['one'], after: [] },
        ],
      ],
    ],
  },
  {
    path: '/tasks',
    create: (client) => newTask(client),
    body: { status: 'completed', due_at: '2027-01-01T01:00:00+01:00' },
    events: [
      [
        'task.updated',
        [
          { field: 'status', before: 'open', after: 'completed' },
          { field: 'due_at', before: null, after: '2027-01-01T00:00:00.000Z' },
          { field: 'completed_at', before: null, after: time },
        ],
      ],
      ['task.completed', null],
    ],
  },
  {
    path: '/jobs',
    create: (client) => newJob(client),
    body: {
      screening_questions: [
        { key: 'age', label: 'Age', requirement: 'must_have', expected: 18, operator: 'at_least' },
      ],
    },
    events: [
      [
        'job.updated',
        [
          {
            field: 'screening_questions',
            before: [],
            after: [expect.objectContaining({ expected: 18 })],
          },
        ],
      ],
    ],
  },
  {
    path: '/job-applications',
    create: (client) => newApplication(client),
    body: { status: 'rejected', answers: { note: 'ß \u{1f600}' } },
    events: [
      [
        'job_application.updated',
        [
          { field: 'status', before: 'submitted', after: 'rejected' },
          { field: 'answers', before: {}, after: { note: 'ß \u{1f600}' } },
        ],
      ],
      ['job_application.status_changed', null],
    ],
  },
  {
    path: '/payments',
    create: (client) => newPayment(client),
    body: { amount_minor: 999_999_999_999, status: 'paid' },
    events: [
      [
        'payment.updated',
        [
          { field: 'amount_minor', before: 12500, after: 999_999_999_999 },
          { field: 'status', before: 'pending', after: 'paid' },
          { field: 'paid_at', before: null, after: time },
        ],
      ],
      ['payment.paid', null],
    ],
  },
]

describe('changes', () => {
  test.each(UPDATES)('an update of $path → each field before and after', async (update) => {
    const client = await app.newClient()
    const { id } = await update.create(client)
    expect(await client.patch(`${update.path}/${id}`, update.body)).toMatchObject({ status: 200 })
    expect((await changesOf(client, id)).slice(1)).toEqual(update.events)
  })

  test('creations and deletions → null; the list has neither changes nor actor', async () => {
    const client = await app.newClient()
    const { id } = await newTask(client)
    await client.delete(`/tasks/${id}`)
    expect(await changesOf(client, id)).toEqual([
      ['task.created', null],
      ['task.deleted', null],
    ])
    for (const event of (await client.get('/events')).body.data)
      expect(Object.keys(event)).toEqual(['id', 'event_type', 'resource', 'data', 'created_at'])
  })

  test('values above 2 KiB as JSON → only the name of the field', async () => {
    const client = await app.newClient()
    const largest = 'a'.repeat(2046)
    const { id } = await newTask(client, { description: largest })
    await client.patch(`/tasks/${id}`, { description: `${largest}€`, title: 'New' })
    await client.patch(`/tasks/${id}`, { description: '' })
    await client.patch(`/tasks/${id}`, { description: largest })
    expect((await changesOf(client, id)).slice(1)).toEqual([
      [
        'task.updated',
        [{ field: 'title', before: expect.any(String), after: 'New' }, { field: 'description' }],
      ],
      ['task.updated', [{ field: 'description' }]],
      ['task.updated', [{ field: 'description', before: '', after: largest }]],
    ])
  })

  test('a deletion that clears references → the cleared reference of each record', async () => {
    const client = await app.newClient()
    const { id: participant_id } = await newParticipant(client)
    const tasks = [
      await newTask(client, { participant_id }),
      await newTask(client, { participant_id }),
    ]
    await client.delete(`/participants/${participant_id}`)
    for (const { id } of tasks)
      expect((await changesOf(client, id)).at(-1)).toEqual([
        'task.updated',
        [{ field: 'participant_id', before: participant_id, after: null }],
      ])
    const { id: task_id } = await newTask(client)
    const payment = await newPayment(client, { task_id })
    await client.delete(`/tasks/${task_id}`)
    expect((await changesOf(client, payment.id)).at(-1)).toEqual([
      'payment.updated',
      [{ field: 'task_id', before: task_id, after: null }],
    ])
  })

  test('of a payment: only with the Finance permission, which counts at once', async () => {
    const account = await app.newAccount()
    const client = app.as(account)
    const payment = await newPayment(client)
    const task = await newTask(client)
    await client.patch(`/payments/${payment.id}`, { note: 'Travel' })
    await client.patch(`/tasks/${task.id}`, { title: 'New' })
    const { userId } = await app.newUser(account.accountId, { finance: 'read' })
    const reader = app.as({ key: await app.newKey({ accountId: account.accountId, userId }) })
    const ofPayment = async () => (await changesOf(reader, payment.id)).at(-1)
    const note = [{ field: 'note', before: null, after: 'Travel' }]
    expect(await ofPayment()).toEqual(['payment.updated', note])
    await app.db.write('users').where({ id: userId }).update({ finance_permission: 'none' })
    expect(await ofPayment()).toEqual(['payment.updated', null])
    expect((await changesOf(reader, task.id)).at(-1)).toEqual([
      'task.updated',
      [{ field: 'title', before: task.title, after: 'New' }],
    ])
  })
})

describe('actor', () => {
  test('a request → the key and its owner, also after the key was deleted', async () => {
    const account = await app.newAccount()
    const { userId } = await app.newUser(account.accountId)
    const client = app.as({ key: await app.newKey({ accountId: account.accountId, userId }) })
    const { api_key } = (await client.get('/me')).body
    const { id } = await newTask(client)
    await app.db.write('api_keys').where({ id: api_key.id }).delete()
    const [event] = await readEvents(app.as(account), id)
    expect(event.actor).toEqual({ type: 'api_key', id: api_key.id, user_id: userId })
  })

  test('an event of an earlier version → no actor, no changes', async () => {
    const account = await app.newAccount()
    const client = app.as(account)
    const { id } = await newTask(client)
    await app.db
      .write('events')
      .where({ resource_id: id })
      .update({ actor_type: null, api_key_id: null, user_id: null })
    const [event] = await readEvents(client, id)
    expect(event).toMatchObject({ event_type: 'task.created', changes: null, delivery_ids: [] })
    expect(event).not.toHaveProperty('actor')
  })
})
