import { beforeAll, describe, expect, test } from 'vitest'
import { type Client, sharedApp, type TestAccount } from '../helpers.ts'
import {
  type Body,
  errorOf,
  eventsAbout,
  expectSuccess,
  newApplication,
  newParticipant,
  newPayment,
  newTask,
  requestExample,
  withNulls,
} from './new-records.ts'

const NOON = '2026-03-02T12:00:00.000Z'

let account: TestAccount
let client: Client
let clock = Date.parse(NOON)

const app = sharedApp({ now: () => new Date(clock) })
beforeAll(async () => {
  account = await app.newAccount()
  client = app.as(account)
})

const idsWithTag = async (tag: string): Promise<string[]> =>
  (await client.get(`/participants?filter[tag]=${tag}`)).body.data.map(({ id }: Body) => id)

describe('createParticipant', () => {
  test('the example of the contract → 201 with its fields in order, and participant.created', async () => {
    const answer = await client.post('/participants', requestExample('ParticipantCreateBody'))
    const { id } = answer.body
    expect([answer.status, answer.headers.get('location')]).toEqual([
      201,
      `/public/v1/participants/${id}`,
    ])
    const stored = {
      id,
      full_name: 'Ada Lovelace',
      email: 'ada@example.com',
      phone: '+44 20 7946 0000',
      status: 'active',
      tags: ['vip'],
      external_id: 'crm-1815',
      created_at: NOON,
      updated_at: NOON,
    }
    expect(answer.text).toBe(JSON.stringify(withNulls('Participant', stored)))
    expect(await eventsAbout(client, id)).toEqual(['participant.created'])
  })

  test('only a name → defaults for the other fields', async () => {
    const { status, body } = await client.post('/participants', { full_name: 'A' })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      full_name: 'A',
      email: null,
      phone: null,
      status: 'active',
      tags: [],
      external_id: null,
    })
  })

  const invalid: { given: object; field: string }[] = [
    { given: { full_name: undefined }, field: 'full_name' },
    { given: { full_name: '' }, field: 'full_name' },
    { given: { full_name: 'x'.repeat(201) }, field: 'full_name' },
    { given: { full_name: null }, field: 'full_name' },
    { given: { email: 'nobody' }, field: 'email' },
    { given: { email: `${'x'.repeat(243)}@example.com` }, field: 'email' },
    { given: { phone: '' }, field: 'phone' },
    { given: { status: 'gone' }, field: 'status' },
    { given: { tags: 'vip' }, field: 'tags' },
    { given: { tags: ['a', 'b', 'a'] }, field: 'tags' },
    { given: { tags: ['a', ''] }, field: 'tags.1' },
    { given: { tags: Array.from({ length: 51 }, (_, i) => `${i}`) }, field: 'tags' },
    { given: { external_id: '' }, field: 'external_id' },
  ]
  test.each(invalid)('$given → 422 on $field', async ({ given, field }) =>
    expect(await errorOf(client.post('/participants', { full_name: 'A', ...given }))).toEqual({
      status: 422,
      fields: [field],
    }),
  )

  test('an email (in any case) or external ID in use → 422 on the field; in another account → 201', async () => {
    await newParticipant(client, { email: 'Grace@Example.com', external_id: 'Navy-1' })
    const email = { full_name: 'A', email: 'gRACE@example.COM' }
    const externalId = { full_name: 'A', external_id: 'Navy-1' }
    expect(await errorOf(client.post('/participants', email))).toEqual({
      status: 422,
      fields: ['email'],
    })
    expect(await errorOf(client.post('/participants', externalId))).toEqual({
      status: 422,
      fields: ['external_id'],
    })
    expect(
      (await client.post('/participants', { full_name: 'A', external_id: 'navy-1' })).status,
    ).toBe(201)
    const stranger = await app.newClient()
    expect((await stranger.post('/participants', { ...email, ...externalId })).status).toBe(201)
  })

  test('concurrent requests with one email → one 201, 422 for the others, one event', async () => {
    const otherClient = await app.newClient()
    const answers = await Promise.all(
      Array.from({ length: 6 }, () =>
        otherClient.post('/participants', {
          full_name: 'A',
          email: 'race@example.com',
          tags: ['x'],
        }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422, 422, 422, 422, 422])
    expect((await otherClient.get('/events')).body.meta.total).toBe(1)
  })

  test('names with characters of SQL and LIKE → stored and found unchanged', async () => {
    const full_name = `Robert'); drop table participants;-- 50%_\\`
    const { id } = await newParticipant(client, { full_name, tags: ["o'clock"] })
    const found = await client.get(
      `/participants?filter[search]=${encodeURIComponent(full_name.toUpperCase())}`,
    )
    expect(found.body.data).toMatchObject([{ id, full_name }])
    expect(await idsWithTag("o'clock")).toEqual([id])
  })
})

describe('updateParticipant', () => {
  test('the example of the contract → 200, the other fields unchanged, and participant.updated', async () => {
    const before = await newParticipant(client, {
      email: 'update@example.com',
      tags: ['vip', 'old'],
    })
    clock += 1000
    const answer = await client.patch(
      `/participants/${before.id}`,
      requestExample('ParticipantUpdateBody'),
    )
    const updated_at = new Date(clock).toISOString()
    expect(answer.body).toEqual({
      ...before,
      status: 'archived',
      tags: ['vip', 'alumni'],
      updated_at,
    })
    expect(await eventsAbout(client, before.id)).toEqual([
      'participant.created',
      'participant.updated',
    ])
  })

  test('tags → found by the new tags only', async () => {
    const { id } = await newParticipant(client, { tags: ['red', 'green'] })
    await expectSuccess(client.patch(`/participants/${id}`, { tags: ['green', 'blue'] }))
    expect([await idsWithTag('red'), await idsWithTag('green'), await idsWithTag('blue')]).toEqual([
      [],
      [id],
      [id],
    ])
    await expectSuccess(client.patch(`/participants/${id}`, { tags: [] }))
    expect(await idsWithTag('green')).toEqual([])
  })

  test('name and email → found by the new texts only', async () => {
    const { id } = await newParticipant(client, {
      full_name: 'Before',
      email: 'before@example.com',
    })
    await expectSuccess(
      client.patch(`/participants/${id}`, { full_name: 'Afterwards', email: 'Later@example.com' }),
    )
    const total = async (filter: string): Promise<number> =>
      (await client.get(`/participants?${filter}`)).body.meta.total
    expect(await total('filter[search]=before')).toBe(0)
    expect(await total('filter[email]=before@example.com')).toBe(0)
    expect(await total('filter[search]=afterwards')).toBe(1)
    expect(await total('filter[email]=LATER@example.com')).toBe(1)
  })

  test('null for nullable fields → cleared; their values can be used again', async () => {
    const given = { email: 'free@example.com', phone: '1', external_id: 'free' }
    const { id } = await newParticipant(client, given)
    const cleared = await expectSuccess(
      client.patch(`/participants/${id}`, { email: null, phone: null, external_id: null }),
    )
    expect(cleared).toMatchObject({ email: null, phone: null, external_id: null })
    await newParticipant(client, given)
    expect(
      await errorOf(
        client.patch(`/participants/${id}`, { full_name: null, tags: null, status: null }),
      ),
    ).toMatchObject({
      fields: ['full_name', 'status', 'tags'],
    })
  })

  test('an email or external ID of another participant → 422; its own email in another case → 200', async () => {
    await newParticipant(client, { email: 'first@example.com', external_id: 'first' })
    const second = await newParticipant(client, { email: 'second@example.com' })
    const patch = (body: object) => client.patch(`/participants/${second.id}`, body)
    expect(await errorOf(patch({ full_name: 'New', email: 'FIRST@example.com' }))).toEqual({
      status: 422,
      fields: ['email'],
    })
    expect(await errorOf(patch({ tags: ['new'], external_id: 'first' }))).toEqual({
      status: 422,
      fields: ['external_id'],
    })
    expect((await client.get(`/participants/${second.id}`)).body).toEqual(second)
    expect((await patch({ email: 'Second@Example.com' })).body.email).toBe('Second@Example.com')
  })

  test('each status → can change to each other status', async () => {
    const { id } = await newParticipant(client)
    for (const status of ['archived', 'inactive', 'active', 'inactive', 'archived', 'active'])
      expect((await client.patch(`/participants/${id}`, { status })).body.status).toBe(status)
  })

  test('each change → a later updated_at, even if the clock stops or goes back', async () => {
    let { id, updated_at } = await newParticipant(client)
    for (const phone of ['1', '2', '3']) {
      clock -= 1000
      const changed = await expectSuccess(client.patch(`/participants/${id}`, { phone }))
      expect(changed.updated_at > updated_at).toBe(true)
      updated_at = changed.updated_at
    }
    // The other tests need a clock that does not go back.
    clock += 3000
  })
})

describe('deleteParticipant', () => {
  test('with job applications or payments → 422 with their numbers, and no change', async () => {
    const { id } = await newParticipant(client)
    const task = await newTask(client, { participant_id: id })
    const applications = [
      await newApplication(client, { participant_id: id }),
      await newApplication(client, { participant_id: id }),
    ]
    const payment = await newPayment(client, { participant_id: id })
    const answer = await client.delete(`/participants/${id}`)
    expect([answer.status, Object.keys(answer.body.errors)]).toEqual([422, ['participant']])
    expect(answer.body.errors.participant[0]).toContain('2 job applications and 1 payment')
    expect((await client.get(`/tasks/${task.id}`)).body).toEqual(task)

    await client.delete(`/payments/${payment.id}`)
    await client.delete(`/job-applications/${applications[0].id}`)
    expect((await client.delete(`/participants/${id}`)).body.errors.participant[0]).toContain(
      'still has 1 job application.',
    )
    await client.delete(`/job-applications/${applications[1].id}`)
    expect((await client.delete(`/participants/${id}`)).status).toBe(204)
  })

  test('with tasks → 204; the tasks stay without a participant, each with a new version and task.updated', async () => {
    const { id } = await newParticipant(client, { tags: ['leaving'] })
    const tasks = [
      await newTask(client, { participant_id: id }),
      await newTask(client, { participant_id: id }),
    ]
    const other = await newTask(client, { participant_id: (await newParticipant(client)).id })
    expect((await client.delete(`/participants/${id}`)).status).toBe(204)
    for (const task of tasks) {
      const remaining = (await client.get(`/tasks/${task.id}`)).body
      expect(remaining).toEqual({ ...task, participant_id: null, updated_at: remaining.updated_at })
      expect(remaining.updated_at > task.updated_at).toBe(true)
      expect(await eventsAbout(client, task.id)).toEqual(['task.created', 'task.updated'])
    }
    expect((await client.get(`/tasks/${other.id}`)).body).toEqual(other)
    expect(await eventsAbout(client, id)).toEqual(['participant.created', 'participant.deleted'])
    expect(await idsWithTag('leaving')).toEqual([])
  })

  test('with thousands of tasks → 204, and an event for each', async () => {
    const otherClient = await app.newClient()
    const { id } = await newParticipant(otherClient)
    const { id: taskId } = await newTask(otherClient, { participant_id: id })
    const [row] = await app.db.read('tasks').where({ id: taskId })
    const copies = Array.from({ length: 5000 }, (_, i) => ({
      ...row,
      id: `00000000-0000-7000-8000-${String(i).padStart(12, '0')}`,
    }))
    for (let from = 0; from < copies.length; from += 500)
      await app.db.write('tasks').insert(copies.slice(from, from + 500))
    expect((await otherClient.delete(`/participants/${id}`)).status).toBe(204)
    const updates = await otherClient.get('/events?filter[event_type]=task.updated')
    expect(updates.body.meta.total).toBe(1 + copies.length)
    expect((await otherClient.get(`/tasks?filter[participant_id]=${id}`)).body.meta.total).toBe(0)
  })

  test('the email and the external ID of a deleted participant → can be used again', async () => {
    const given = { email: 'gone@example.com', external_id: 'gone' }
    const { id } = await newParticipant(client, given)
    await client.delete(`/participants/${id}`)
    await newParticipant(client, given)
  })

  test('during the creation of its tasks and payments → no record refers to a deleted participant', async () => {
    for (let round = 0; round < 5; round++) {
      const { id } = await newParticipant(client)
      const [deleted, task, payment] = await Promise.all([
        client.delete(`/participants/${id}`),
        client.post('/tasks', { title: 'T', participant_id: id }),
        client.post('/payments', { participant_id: id, amount_minor: 1, currency: 'EUR' }),
      ])
      expect([201, 422]).toContain(task.status)
      expect([deleted.status, payment.status]).toEqual(
        deleted.status === 204 ? [204, 422] : [422, 201],
      )
      if (task.status === 201) {
        const { participant_id } = (await client.get(`/tasks/${task.body.id}`)).body
        expect(participant_id).toBe(deleted.status === 204 ? null : id)
      }
    }
  })
})
