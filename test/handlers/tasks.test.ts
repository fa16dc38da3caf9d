import { beforeAll, describe, expect, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { expectMove, pairsOf } from './checks.ts'
import {
  type Body,
  errorOf,
  eventsAbout,
  expectSuccess,
  newParticipant,
  newPayment,
  newTask,
  requestExample,
  withNulls,
} from './new-records.ts'

const NOON = '2026-03-02T12:00:00.000Z'

let client: Client
let clock = Date.parse(NOON)

const app = sharedApp({ now: () => new Date(clock) })
beforeAll(async () => {
  client = await app.newClient()
})

describe('createTask', () => {
  test('the example of the contract → 201 with its fields in order, and task.created', async () => {
    const { id: participant_id } = await newParticipant(client)
    const answer = await client.post('/tasks', {
      ...requestExample('TaskCreateBody'),
      participant_id,
    })
    const { id } = answer.body
    expect([answer.status, answer.headers.get('location')]).toEqual([201, `/public/v1/tasks/${id}`])
    const stored = {
      id,
      title: 'Send the welcome letter',
      description: '',
      status: 'open',
      participant_id,
      due_at: '2026-03-09T17:00:00.000Z',
      completed_at: null,
      created_at: NOON,
      updated_at: NOON,
    }
    expect(answer.text).toBe(JSON.stringify(withNulls('Task', stored)))
    expect(await eventsAbout(client, id)).toEqual(['task.created'])
  })

  test('only a title → defaults for the other fields', async () =>
    expect(await newTask(client, { title: 'T' })).toMatchObject({
      description: '',
      status: 'open',
      participant_id: null,
      due_at: null,
    }))

  const times: { given: string; want: string }[] = [
    { given: '2026-03-09T17:00:00Z', want: '2026-03-09T17:00:00.000Z' },
    { given: '2026-03-09T17:00:00+05:30', want: '2026-03-09T11:30:00.000Z' },
    { given: '2026-03-09T17:00:00.123456789-08:00', want: '2026-03-10T01:00:00.123Z' },
    { given: '2028-02-29T23:59:59.9Z', want: '2028-02-29T23:59:59.900Z' },
    { given: '1000-01-01T00:00:00Z', want: '1000-01-01T00:00:00.000Z' },
    { given: '2999-12-31T23:59:59.999Z', want: '2999-12-31T23:59:59.999Z' },
  ]
  test.each(times)('due_at $given → $want', async ({ given, want }) => {
    const task = await newTask(client, { due_at: given })
    expect(task.due_at).toBe(want)
    expect((await client.get(`/tasks/${task.id}`)).body.due_at).toBe(want)
  })

  const invalid: { given: object; field: string }[] = [
    { given: { title: undefined }, field: 'title' },
    { given: { title: '' }, field: 'title' },
    { given: { title: 'x'.repeat(201) }, field: 'title' },
    { given: { description: null }, field: 'description' },
    { given: { description: 'x'.repeat(10_001) }, field: 'description' },
    { given: { status: 'completed' }, field: 'status' },
    { given: { status: 'cancelled' }, field: 'status' },
    { given: { due_at: 'tomorrow' }, field: 'due_at' },
    { given: { due_at: '2026-02-29T00:00:00Z' }, field: 'due_at' },
    { given: { due_at: '2026-03-09T24:00:00Z' }, field: 'due_at' },
    { given: { due_at: '2026-03-09T23:59:60Z' }, field: 'due_at' },
    { given: { due_at: '2026-03-09T17:00:00' }, field: 'due_at' },
    { given: { due_at: '0999-03-09T17:00:00Z' }, field: 'due_at' },
    { given: { due_at: 1772443800000 }, field: 'due_at' },
    { given: { participant_id: '' }, field: 'participant_id' },
    { given: { completed_at: NOON }, field: 'completed_at' },
  ]
  test.each(invalid)('$given → 422 on $field', async ({ given, field }) =>
    expect(await errorOf(client.post('/tasks', { title: 'T', ...given }))).toEqual({
      status: 422,
      fields: [field],
    }),
  )
})

describe('updateTask', () => {
  test('the example of the contract → completed_at is now, task.updated and task.completed', async () => {
    const task = await newTask(client)
    clock += 90_000
    const now = new Date(clock).toISOString()
    const answer = await client.patch(`/tasks/${task.id}`, requestExample('TaskUpdateBody'))
    expect(answer.body).toEqual({
      ...task,
      status: 'completed',
      completed_at: now,
      updated_at: now,
    })
    expect(await eventsAbout(client, task.id)).toEqual([
      'task.created',
      'task.updated',
      'task.completed',
    ])
  })

  const MOVES = {
    open: ['in_progress', 'completed', 'cancelled'],
    in_progress: ['open', 'completed', 'cancelled'],
    completed: [],
    cancelled: [],
  }
  test.each(pairsOf(MOVES))(
    '$from → $to is possible: $isPossible',
    async ({ from, to, isPossible }) => {
      const { id } = await newTask(client)
      await expectSuccess(client.patch(`/tasks/${id}`, { status: from }))
      const after = await expectMove(client, `/tasks/${id}`, { from, to, isPossible })
      expect(after.completed_at === null).toBe(after.status !== 'completed')
    },
  )

  test.each(pairsOf(MOVES).filter(({ isPossible }) => !isPossible))(
    '$from → $to: the error says that $from is final',
    async ({ from, to }) => {
      const { id } = await newTask(client)
      await expectSuccess(client.patch(`/tasks/${id}`, { status: from }))
      const { body } = await client.patch(`/tasks/${id}`, { status: to })
      expect(body.errors).toEqual({
        status: [`cannot become ${to}: it is ${from}, which is final.`],
      })
    },
  )

  test('a forbidden status with other changes → 422, and no change', async () => {
    const { id } = await newTask(client)
    const done = await expectSuccess(client.patch(`/tasks/${id}`, { status: 'completed' }))
    expect(await errorOf(client.patch(`/tasks/${id}`, { title: 'New', status: 'open' }))).toEqual({
      status: 422,
      fields: ['status'],
    })
    expect((await client.get(`/tasks/${id}`)).body).toEqual(done)
    expect(
      (await client.patch(`/tasks/${id}`, { title: 'New', status: 'completed' })).body,
    ).toMatchObject({
      title: 'New',
      completed_at: done.completed_at,
    })
    expect(await eventsAbout(client, id)).toEqual([
      'task.created',
      'task.updated',
      'task.completed',
      'task.updated',
    ])
  })

  test('the same due_at in another notation → no change; null → cleared', async () => {
    const task = await newTask(client, { due_at: '2026-03-09T17:00:00Z' })
    const patch = (due_at: string | null): Promise<Body> =>
      expectSuccess(client.patch(`/tasks/${task.id}`, { due_at }))
    expect(await patch('2026-03-09T18:00:00.000+01:00')).toEqual(task)
    expect(await eventsAbout(client, task.id)).toEqual(['task.created'])
    expect((await patch('2026-03-09T18:00:00Z')).due_at).toBe('2026-03-09T18:00:00.000Z')
    expect((await patch(null)).due_at).toBeNull()
    expect((await client.get(`/tasks/${task.id}`)).body.due_at).toBeNull()
  })

  test('participant_id → set, changed and cleared', async () => {
    const [first, second] = [await newParticipant(client), await newParticipant(client)]
    const { id } = await newTask(client)
    for (const participant_id of [first.id, second.id, null])
      expect((await client.patch(`/tasks/${id}`, { participant_id })).body.participant_id).toBe(
        participant_id,
      )
  })
})

describe('deleteTask', () => {
  test('with payments → 204; the payments stay without a task, each with a new version and payment.updated', async () => {
    const { id } = await newTask(client)
    const payments = [
      await newPayment(client, { task_id: id }),
      await newPayment(client, { task_id: id }),
    ]
    await expectSuccess(client.patch(`/payments/${payments[1].id}`, { status: 'paid' }))
    expect((await client.delete(`/tasks/${id}`)).status).toBe(204)
    for (const payment of payments) {
      const remaining = (await client.get(`/payments/${payment.id}`)).body
      expect(remaining.task_id).toBeNull()
      expect(remaining.updated_at > payment.updated_at).toBe(true)
      expect((await eventsAbout(client, payment.id)).at(-1)).toBe('payment.updated')
    }
    expect(await eventsAbout(client, id)).toEqual(['task.created', 'task.deleted'])
  })
})
