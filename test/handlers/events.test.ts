import { describe, expect, test } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { sharedApp } from '../helpers.ts'
import { statusAndFields } from './checks.ts'
import {
  type Body,
  eventsAbout,
  newApplication,
  newParticipant,
  newTask,
  UNKNOWN_ID,
} from './new-records.ts'

const NOON = Date.parse('2026-03-02T12:00:00.000Z')

let clock = NOON

const app = sharedApp({ now: () => new Date(clock) })

describe('getEvent', () => {
  test('→ the event as in the list: type, record, data and time', async () => {
    const client = await app.newClient()
    clock = NOON
    const { id } = await newApplication(client)
    const { data } = (await client.get('/events')).body
    expect(data.map(({ id: _, ...event }: Body) => event)).toEqual([
      {
        event_type: 'job.created',
        resource: { type: 'job', id: expect.any(String) },
        data: [],
        created_at: '2026-03-02T12:00:00.000Z',
      },
      {
        event_type: 'participant.created',
        resource: { type: 'participant', id: expect.any(String) },
        data: [],
        created_at: '2026-03-02T12:00:00.000Z',
      },
      {
        event_type: 'job_application.created',
        resource: { type: 'job_application', id },
        data: { screening_outcome: null },
        created_at: '2026-03-02T12:00:00.000Z',
      },
    ])
    for (const event of data)
      expect((await client.get(`/events/${event.id}`)).body).toEqual({
        ...event,
        changes: null,
        actor: { type: 'api_key', id: expect.any(String), user_id: expect.any(String) },
        delivery_ids: [],
      })
  })

  test('an unknown ID → 404', async () =>
    expect((await (await app.newClient()).get(`/events/${UNKNOWN_ID}`)).status).toBe(404))
})

describe('listEvents', () => {
  test('the events of a record, in order, also after its deletion', async () => {
    const client = await app.newClient()
    const { id } = await newTask(client)
    for (const body of [{ title: 'New' }, { status: 'in_progress' }, { status: 'completed' }])
      await client.patch(`/tasks/${id}`, body)
    await client.delete(`/tasks/${id}`)
    expect(await eventsAbout(client, id)).toEqual([
      ...['task.created', 'task.updated', 'task.updated'],
      ...['task.updated', 'task.completed', 'task.deleted'],
    ])
  })

  test('a refused request → no event', async () => {
    const client = await app.newClient()
    const { id } = await newParticipant(client, { email: 'ada@example.com' })
    const path = `/participants/${id}`
    const refused = [
      await client.post('/participants', { full_name: '' }),
      await client.post('/participants', { full_name: 'Other', email: 'ada@example.com' }),
      await client.post('/payments', {
        participant_id: UNKNOWN_ID,
        amount_minor: 1,
        currency: 'EUR',
      }),
      await client.patch(path, { status: 'gone' }),
      await client.patch(path, { status: 'archived' }, { 'If-Match': '"other"' }),
      await client.delete(path, { 'If-Match': '"other"' }),
      await client.delete(`/participants/${UNKNOWN_ID}`),
    ]
    expect(refused.map(({ status }) => status)).toEqual([422, 422, 422, 422, 412, 412, 404])
    expect((await client.get('/events')).body.meta.total).toBe(1)
  })

  test('page by page since a time, while others are emitted → each event once', async () => {
    const client = await app.newClient()
    clock = NOON
    await newTask(client)
    const wanted: string[] = []
    for (let second = 1; second <= 7; second++) {
      clock = NOON + second * 1000
      wanted.push((await newTask(client)).id)
    }
    const seen: string[] = []
    for (let page = 1, last = 1; page <= last; page++) {
      const query = `filter[created_after]=${new Date(NOON).toISOString()}&page[size]=3&page[number]=${page}`
      const { data, meta } = (await client.get(`/events?${query}`)).body
      seen.push(...data.map(({ resource }: Body) => resource.id))
      last = meta.last_page
      clock += 1000
      if (page < 3) wanted.push((await newTask(client)).id)
    }
    expect(seen).toEqual(wanted)
  })
})

describe('listEventTypes', () => {
  test('→ the catalogue of asyncapi.yaml', async () => {
    const { body } = await (await app.newClient()).get('/event-types?page[size]=100')
    const catalogue = Object.values(eventTypes).map(
      ({ name, description, resourceType, dataSchema }) => ({
        name,
        description,
        resource_type: resourceType,
        data_schema: dataSchema,
      }),
    )
    expect(body.data).toEqual(catalogue)
    expect(body.meta).toEqual({
      current_page: 1,
      last_page: 1,
      per_page: 100,
      total: catalogue.length,
      allowed_sorts: [],
      next_cursor: null,
      complete_until: null,
    })
  })

  test('all pages → each type once; a page after the last → none', async () => {
    const client = await app.newClient()
    const names: string[] = []
    const total = Object.keys(eventTypes).length
    const pages = Math.ceil(total / 4)
    for (let page = 1; page <= pages + 1; page++) {
      const { data, meta } = (await client.get(`/event-types?page[size]=4&page[number]=${page}`))
        .body
      expect(meta).toMatchObject({ current_page: page, last_page: pages, per_page: 4, total })
      names.push(...data.map(({ name }: Body) => name))
    }
    expect(names).toEqual(Object.keys(eventTypes))
  })

  test('by cursor → each type once; an unknown cursor → 422', async () => {
    const client = await app.newClient()
    const names: string[] = []
    for (let after = ''; ; ) {
      const { data, meta } = (await client.get(`/event-types?page[size]=4${after}`)).body
      names.push(...data.map(({ name }: Body) => name))
      if (meta.next_cursor === null) break
      after = `&page[after]=${meta.next_cursor}`
    }
    expect(names).toEqual(Object.keys(eventTypes))
    expect(statusAndFields(await client.get('/event-types?page[after]=x'))).toEqual([
      422,
      ['page[after]'],
    ])
  })

  test.each([
    ['sort=name', 'sort'],
    ['filter[name]=task.created', 'filter[name]'],
  ])('%s → 422, because the list has no sorts and filters', async (query, field) =>
    expect(statusAndFields(await (await app.newClient()).get(`/event-types?${query}`))).toEqual([
      422,
      [field],
    ]),
  )
})
