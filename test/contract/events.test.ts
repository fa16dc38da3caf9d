/** Both contracts together: what an operation declares in `x-emits` is what it emits. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { type OperationId, operations } from '../../generated/operations.ts'
import { events as validators } from '../../generated/validators.js'
import { type Answer, type Client, operationIds, startApp, type TestApp } from '../helpers.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app[Symbol.asyncDispose]())

/** Makes every event that its operation can emit: first what it needs, then the operation. */
const scenarios: Partial<Record<OperationId, (client: Client) => Promise<() => Promise<Answer>>>> =
  {
    createParticipant: async (client) => () => client.post('/participants', { full_name: 'A' }),
    updateParticipant: async (client) => {
      const id = await participant(client)
      return () => client.patch(`/participants/${id}`, { full_name: 'B' })
    },
    deleteParticipant: async (client) => {
      const id = await participant(client)
      await made(client.post('/tasks', { title: 'T', participant_id: id }))
      return () => client.delete(`/participants/${id}`)
    },
    createTask: async (client) => () => client.post('/tasks', { title: 'T' }),
    updateTask: async (client) => {
      const id = await made(client.post('/tasks', { title: 'T' }))
      return () => client.patch(`/tasks/${id}`, { status: 'completed' })
    },
    deleteTask: async (client) => {
      const task = await made(client.post('/tasks', { title: 'T' }))
      await made(
        client.post('/payments', {
          participant_id: await participant(client),
          task_id: task,
          amount_minor: 1,
          currency: 'EUR',
        }),
      )
      return () => client.delete(`/tasks/${task}`)
    },
    createJob: async (client) => () => client.post('/jobs', { title: 'J' }),
    updateJob: async (client) => {
      const id = await made(client.post('/jobs', { title: 'J' }))
      return () => client.patch(`/jobs/${id}`, { status: 'open' })
    },
    deleteJob: async (client) => {
      const id = await made(client.post('/jobs', { title: 'J' }))
      return () => client.delete(`/jobs/${id}`)
    },
    createJobApplication: async (client) => {
      const body = await applicationBody(client)
      return () => client.post('/job-applications', body)
    },
    updateJobApplication: async (client) => {
      const id = await made(client.post('/job-applications', await applicationBody(client)))
      return () => client.patch(`/job-applications/${id}`, { status: 'shortlisted' })
    },
    deleteJobApplication: async (client) => {
      const id = await made(client.post('/job-applications', await applicationBody(client)))
      return () => client.delete(`/job-applications/${id}`)
    },
    createExport: async (client) => () =>
      client.post('/exports', { resource: 'tasks', format: 'json' }),
    createPayment: async (client) => {
      const participant_id = await participant(client)
      return () => client.post('/payments', { participant_id, amount_minor: 1, currency: 'EUR' })
    },
    updatePayment: async (client) => {
      const id = await made(
        client.post('/payments', {
          participant_id: await participant(client),
          amount_minor: 1,
          currency: 'EUR',
        }),
      )
      return () => client.patch(`/payments/${id}`, { status: 'paid' })
    },
    deletePayment: async (client) => {
      const id = await made(
        client.post('/payments', {
          participant_id: await participant(client),
          amount_minor: 1,
          currency: 'EUR',
        }),
      )
      return () => client.delete(`/payments/${id}`)
    },
  }

async function made(answer: Promise<Answer>): Promise<string> {
  const { status, body, text } = await answer
  if (status !== 201) throw new Error(`${status}: ${text}`)
  return body.id
}

const participant = (client: Client): Promise<string> =>
  made(client.post('/participants', { full_name: 'A' }))

async function applicationBody(client: Client): Promise<object> {
  const job_id = await made(client.post('/jobs', { title: 'J', status: 'open' }))
  return { job_id, participant_id: await participant(client) }
}

async function emitted(client: Client): Promise<string[]> {
  const { body } = await client.get('/events?page[size]=100')
  return body.data.map((event: { event_type: string }) => event.event_type)
}

test.each(operationIds.filter((id) => operations[id].emits.length > 0))(
  '%s emits what it declares, and nothing else',
  async (id) => {
    const client = app.as(await app.newAccount())
    const prepare = scenarios[id]
    if (!prepare) throw new Error(`${id} emits something, and has no scenario here`)
    const operate = await prepare(client)
    const before = (await emitted(client)).length
    const answer = await operate()
    expect(answer.status).toBe(operations[id].success)
    expect((await emitted(client)).slice(before).sort()).toEqual([...operations[id].emits].sort())
  },
)

test.each(operationIds.filter((id) => operations[id].method === 'patch'))(
  '%s that changes nothing emits nothing and keeps the version',
  async (id) => {
    const client = app.as(await app.newAccount())
    const made = await (
      await scenarios[id.replace('update', 'create') as OperationId]?.(client)
    )?.()
    const path = made?.headers.get('location')?.replace('/public/v1', '') ?? ''
    const before = await emitted(client)
    const { status } = made?.body ?? {}
    for (const body of [{}, { status }]) {
      const answer = await client.patch(path, body)
      expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([
        200,
        made?.text,
        made?.headers.get('etag'),
      ])
    }
    expect(await emitted(client)).toEqual(before)
  },
)

test('every event type is emitted by an operation or by the system', () => {
  const declared = new Set(operationIds.flatMap((id) => [...operations[id].emits]))
  const system = ['export.completed', 'export.failed']
  expect([...declared, ...system].sort()).toEqual(Object.keys(eventTypes).sort())
})

test('what is sent because somebody asks for it is no event type: nobody subscribes to it, and no operation emits it', async () => {
  const asked = Object.keys(validators).filter((type) => !Object.hasOwn(eventTypes, type))
  expect(asked).toEqual(['webhook.test'])
  const { body } = await app.as(await app.newAccount()).get('/event-types?page[size]=100')
  expect(body.data.map(({ name }: { name: string }) => name)).toEqual(Object.keys(eventTypes))
})

test.each(Object.values(eventTypes))('the example of $name is valid', ({ name, example }) => {
  expect(validators[name].payload(example) ? [] : validators[name].payload.errors).toEqual([])
})
