/** Concurrent requests: each succeeds or is refused as if it were alone. */
import { describe, expect, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { statusAndFields } from './checks.ts'
import {
  type Body,
  eventsAbout,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
} from './new-records.ts'

const ROUNDS = 6

const app = sharedApp()

/** Runs several rounds concurrently. */
async function runRounds(round: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: ROUNDS }, round))
}

describe('updates of one record', () => {
  const kinds: {
    path: string
    event: string
    create: (client: Client) => Promise<Body>
    change: (i: number) => object
  }[] = [
    {
      path: '/participants',
      event: 'participant',
      create: newParticipant,
      change: (i) => ({ phone: `+${i}` }),
    },
    { path: '/tasks', event: 'task', create: newTask, change: (i) => ({ title: `Task ${i}` }) },
    { path: '/jobs', event: 'job', create: newJob, change: (i) => ({ description: `${i}` }) },
    {
      path: '/job-applications',
      event: 'job_application',
      create: newApplication,
      change: (i) => ({ answers: { i } }),
    },
    {
      path: '/payments',
      event: 'payment',
      create: newPayment,
      change: (i) => ({ amount_minor: i + 1 }),
    },
  ]
  test.each(kinds)(
    '10 concurrent updates of one of $path → 10 versions, 10 events',
    async ({ path, event, create, change }) => {
      const client = await app.newClient()
      const recordPath = `${path}/${(await create(client)).id}`
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, i) => client.patch(recordPath, change(i))),
      )
      expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
      const versions = answers.toSorted((a, b) => (a.body.updated_at < b.body.updated_at ? -1 : 1))
      expect(new Set(versions.map(({ body }) => body.updated_at)).size).toBe(10)
      expect((await client.get(recordPath)).text).toBe(versions.at(-1)?.text)
      expect(await eventsAbout(client, answers[0]?.body.id)).toEqual([
        `${event}.created`,
        ...Array(10).fill(`${event}.updated`),
      ])
    },
  )

  test('updateParticipant: concurrent updates of different fields → all are stored', async () => {
    const client = await app.newClient()
    const { id } = await newParticipant(client)
    const fields = {
      full_name: 'B',
      email: 'b@example.com',
      phone: '+1',
      status: 'archived',
      tags: ['b'],
      external_id: 'b',
    }
    await Promise.all(
      Object.entries(fields).map(([name, value]) =>
        client.patch(`/participants/${id}`, { [name]: value }),
      ),
    )
    expect((await client.get(`/participants/${id}`)).body).toMatchObject(fields)
    const found = await client.get(
      '/participants?filter[tag]=b&filter[email]=B@example.com&filter[search]=b',
    )
    expect(found.body.meta.total).toBe(1)
  })

  test('updateParticipant: two with the same If-Match → one 200, one 412', async () => {
    const client = await app.newClient()
    const path = `/participants/${(await newParticipant(client)).id}`
    const version = { 'If-Match': (await client.get(path)).headers.get('etag') ?? '' }
    const answers = await Promise.all(
      ['+1', '+2'].map((phone) => client.patch(path, { phone }, version)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412])
  })

  test('updateTask: concurrent completions → 200 for each, one task.completed', async () => {
    const client = await app.newClient()
    const { id } = await newTask(client)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => client.patch(`/tasks/${id}`, { status: 'completed' })),
    )
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect((await eventsAbout(client, id)).sort()).toEqual([
      'task.completed',
      'task.created',
      'task.updated',
    ])
  })

  test('updateTask: completed and cancelled at once → one succeeds, the other is refused', async () => {
    const client = await app.newClient()
    const { id } = await newTask(client)
    const answers = await Promise.all(
      ['completed', 'cancelled'].map((status) => client.patch(`/tasks/${id}`, { status })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422])
  })
})

describe('unique values', () => {
  test('createParticipant: one external ID, sent concurrently → exactly one 201', async () => {
    const client = await app.newClient()
    const body = { full_name: 'Ada', external_id: 'crm-1815' }
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => client.post('/participants', body)),
    )
    expect(answers.map(statusAndFields).sort()).toEqual([
      [201, []],
      ...Array(5).fill([422, ['external_id']]),
    ])
    expect((await client.get('/participants')).body.meta.total).toBe(1)
  })

  test('updateParticipant: one email in different cases, sent concurrently → exactly one 200', async () => {
    const client = await app.newClient()
    const people = [
      await newParticipant(client),
      await newParticipant(client),
      await newParticipant(client),
    ]
    const emails = ['ada@example.com', 'ADA@example.com', 'Ada@Example.com']
    const answers = await Promise.all(
      people.map(({ id }, i) => client.patch(`/participants/${id}`, { email: emails[i] })),
    )
    expect(answers.map(statusAndFields).sort()).toEqual([
      [200, []],
      ...Array(2).fill([422, ['email']]),
    ])
  })
})

describe('a deletion during writes that refer to the record', () => {
  test('deleteParticipant, createJobApplication → one of them is refused', async () => {
    const client = await app.newClient()
    const { id: job_id } = await newJob(client)
    await runRounds(async () => {
      const { id: participant_id } = await newParticipant(client)
      const [created, deleted] = await Promise.all([
        client.post('/job-applications', { job_id, participant_id }),
        client.delete(`/participants/${participant_id}`),
      ])
      const isCreated = created.status === 201
      expect([...statusAndFields(created), ...statusAndFields(deleted)]).toEqual(
        isCreated ? [201, [], 422, ['participant']] : [422, ['participant_id'], 204, []],
      )
      expect((await client.get(`/participants/${participant_id}`)).status).toBe(
        isCreated ? 200 : 404,
      )
    })
  })

  test('deleteJob, createJobApplication → one of them is refused', async () => {
    const client = await app.newClient()
    const { id: participant_id } = await newParticipant(client)
    await runRounds(async () => {
      const { id: job_id } = await newJob(client)
      const [created, deleted] = await Promise.all([
        client.post('/job-applications', { job_id, participant_id }),
        client.delete(`/jobs/${job_id}`),
      ])
      const isCreated = created.status === 201
      expect([...statusAndFields(created), ...statusAndFields(deleted)]).toEqual(
        isCreated ? [201, [], 422, ['job']] : [422, ['job_id'], 204, []],
      )
    })
  })

  test('deleteParticipant, deleteJobApplication → both succeed, or the participant is refused', async () => {
    const client = await app.newClient()
    const { id: job_id } = await newJob(client)
    await runRounds(async () => {
      const { id, participant_id } = await newApplication(client, { job_id })
      const [application, participant] = await Promise.all([
        client.delete(`/job-applications/${id}`),
        client.delete(`/participants/${participant_id}`),
      ])
      expect(application.status).toBe(204)
      expect([204, 422]).toContain(participant.status)
    })
    expect((await client.get('/job-applications')).body.meta.total).toBe(0)
  })

  test('deleteTask, createPayment, updatePayment → the task is deleted, and no payment refers to it', async () => {
    const client = await app.newClient()
    const { id: participant_id } = await newParticipant(client)
    await runRounds(async () => {
      const { id: task_id } = await newTask(client)
      const [mover, holder] = [
        await newPayment(client, { participant_id }),
        await newPayment(client, { participant_id, task_id }),
      ]
      const [created, moved, changed, deleted] = await Promise.all([
        client.post('/payments', { participant_id, task_id, amount_minor: 1, currency: 'EUR' }),
        client.patch(`/payments/${mover.id}`, { task_id }),
        client.patch(`/payments/${holder.id}`, { note: 'Changed' }),
        client.delete(`/tasks/${task_id}`),
      ])
      expect([changed.status, deleted.status]).toEqual([200, 204])
      if (created.status !== 201) expect(statusAndFields(created)).toEqual([422, ['task_id']])
      if (moved.status !== 200) expect(statusAndFields(moved)).toEqual([422, ['task_id']])
    })
    const { data } = (await client.get('/payments?page[size]=100')).body
    expect(data.filter(({ task_id }: Body) => task_id !== null)).toEqual([])
  })

  test('deleteParticipant, updateTask → both participants are deleted, and the task refers to neither', async () => {
    const client = await app.newClient()
    await runRounds(async () => {
      const [first, second] = [await newParticipant(client), await newParticipant(client)]
      const task = await newTask(client, { participant_id: first.id })
      const [moved, ...deleted] = await Promise.all([
        client.patch(`/tasks/${task.id}`, { participant_id: second.id }),
        client.delete(`/participants/${first.id}`),
        client.delete(`/participants/${second.id}`),
      ])
      expect(deleted.map(({ status }) => status)).toEqual([204, 204])
      if (moved.status !== 200) expect(statusAndFields(moved)).toEqual([422, ['participant_id']])
      expect((await client.get(`/tasks/${task.id}`)).body.participant_id).toBeNull()
    })
  })

  test('concurrent deletions of one record → one 204, 404 for the others, one event', async () => {
    const client = await app.newClient()
    const { id } = await newParticipant(client)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => client.delete(`/participants/${id}`)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 404, 404, 404, 404])
    expect(await eventsAbout(client, id)).toEqual(['participant.created', 'participant.deleted'])
  })
})
