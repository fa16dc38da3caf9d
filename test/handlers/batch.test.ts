/** Batches: up to 100 creates and updates in one request. */
import { beforeEach, describe, expect, test } from 'vitest'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { type Answer, type Client, sharedApp, type TestAccount } from '../helpers.ts'
import { statusAndFields } from './checks.ts'
import {
  type Body,
  eventsAbout,
  expectSuccess,
  newApplicationBody,
  newJob,
  newParticipant,
  UNKNOWN_ID,
} from './new-records.ts'

const MIB = 1024 ** 2

const app = sharedApp()
let account: TestAccount
let client: Client
beforeEach(async () => {
  account = await app.newAccount()
  client = app.as(account)
})

interface Item {
  action: string
  id?: string
  data: object
}

const create = (data: object): Item => ({ action: 'create', data: { full_name: 'Ada', ...data } })
const update = (id: string | undefined, data: object): Item => ({ action: 'update', id, data })
const upsert = (external_id: unknown, data: object = {}): Item => ({
  action: 'upsert',
  data: { full_name: 'Ada', external_id, ...data },
})

const send = (items: Item[], fields: object = {}, by = client): Promise<Answer> =>
  by.post('/participants/batch', { items, ...fields })

/** The results of a batch that is not refused as a whole. */
async function resultsOf(items: Item[]): Promise<Body[]> {
  const answer = await send(items)
  expect(answer).toMatchObject({ status: 200 })
  return answer.body.results
}

const statusesOf = async (items: Item[]): Promise<number[]> =>
  (await resultsOf(items)).map(({ status }) => status)

const listAll = async (): Promise<Body[]> =>
  (await client.get('/participants?page[size]=100')).body.data

const eventTypes = async (): Promise<string[]> =>
  (await client.get('/events?page[size]=100')).body.data.map((event: Body) => event.event_type)

test('creates, updates and upserts in order, with the results of the single operations', async () => {
  const [bo, cy] = [
    await newParticipant(client, { full_name: 'Bo' }),
    await newParticipant(client, { full_name: 'Cy', external_id: 'cy' }),
  ]
  const results = await resultsOf([
    create({ full_name: 'Ada', tags: ['vip'], external_id: 'ada' }),
    update(bo.id, { status: 'inactive', tags: ['a', 'b'] }),
    update(undefined, { external_id: 'cy', phone: '1' }),
    upsert('cy', { full_name: 'Cyd' }),
    upsert('dee'),
  ])
  expect(results.map(({ status }) => status)).toEqual([201, 200, 200, 200, 201])
  const [ada, , , cyd, dee] = results.map(({ record }) => record)
  expect(results[1]).toEqual({
    status: 200,
    record: { ...bo, status: 'inactive', tags: ['a', 'b'], updated_at: expect.any(String) },
  })
  expect(cyd).toMatchObject({ id: cy.id, full_name: 'Cyd', phone: '1' })
  for (const record of [ada, results[1].record, cyd, dee])
    expect((await client.get(`/participants/${record.id}`)).body).toEqual(record)
  expect((await client.get('/participants?filter[tag]=vip')).body.data).toEqual([ada])
  expect(await eventsAbout(client, cy.id)).toEqual([
    'participant.created',
    'participant.updated',
    'participant.updated',
  ])
  expect((await eventTypes()).slice(2)).toEqual([
    'participant.created',
    'participant.updated',
    'participant.updated',
    'participant.updated',
    'participant.created',
  ])
})

test('an update that changes nothing emits nothing', async () => {
  const ada = await newParticipant(client, { external_id: 'ada' })
  const [result] = await resultsOf([upsert('ada', { full_name: ada.full_name })])
  expect(result).toEqual({ status: 200, record: ada })
  expect(await eventTypes()).toEqual(['participant.created'])
})

describe('a refused item', () => {
  const refused: [what: string, item: (taken: Body) => Item, status: number, fields: string[]][] = [
    ['invalid data', () => create({ full_name: '', email: 'no' }), 422, ['email', 'full_name']],
    ['an unknown field', () => create({ name: 'x' }), 422, ['name']],
    ['text that cannot be stored', () => create({ phone: 'a\0b' }), 422, ['phone']],
    ['a taken email', () => create({ email: 'A@example.com' }), 422, ['email']],
    ['a taken external ID', () => create({ external_id: 'taken' }), 422, ['external_id']],
    ['an unknown ID', () => update(UNKNOWN_ID, { phone: '1' }), 404, []],
    ['an unknown external ID', () => update(undefined, { external_id: 'none' }), 404, []],
    ['an update of no record', () => update(undefined, { phone: '1' }), 422, ['id']],
    ['an ID in an upsert', ({ id }) => ({ ...upsert('x'), id }), 422, ['id']],
    ['an upsert without external ID', () => upsert(null), 422, ['external_id']],
    [
      'an update to a taken email',
      ({ other }) => update(other, { email: 'a@example.com' }),
      422,
      ['email'],
    ],
  ]

  const newTaken = async (): Promise<Body> => {
    const taken = await newParticipant(client, { email: 'a@example.com', external_id: 'taken' })
    const other = await newParticipant(client)
    return { ...taken, other: other.id }
  }

  test.each(refused)('%s changes nothing, and the others are done', async (_, of, ...want) => {
    const item = of(await newTaken())
    const before = await listAll()
    const results = await resultsOf([create({ external_id: 'one' }), item, upsert('two')])
    expect(results.map(({ status }) => status)).toEqual([201, want[0], 201])
    expect([results[1].status, Object.keys(results[1].errors ?? {}).sort()]).toEqual(want)
    expect(results[1].message).toEqual(expect.any(String))
    expect(results[1].record).toBeUndefined()
    expect(await listAll()).toEqual([...before, results[0].record, results[2].record])
    expect(await eventTypes()).toEqual(Array(4).fill('participant.created'))
  })

  test.each(refused)(
    '%s refuses an atomic batch, which changes nothing',
    async (_, of, status, fields) => {
      const item = of(await newTaken())
      const before = await listAll()
      const answer = await send([create({ external_id: 'one' }), item, upsert('two')], {
        atomic: true,
      })
      const names =
        status === 404
          ? [`items.1.${item.id === undefined ? 'data.external_id' : 'id'}`]
          : fields.map((field) => `items.1.${field === 'id' ? field : `data.${field}`}`)
      expect(statusAndFields(answer)).toEqual([422, expect.arrayContaining(names)])
      expect(await listAll()).toEqual(before)
      expect(await eventTypes()).toHaveLength(2)
    },
  )
})

test('an atomic batch is refused for all of its refused items', async () => {
  const items = [create({ email: 'no' }), create({}), update(UNKNOWN_ID, {}), create({ x: 1 })]
  expect(statusAndFields(await send(items, { atomic: true }))).toEqual([
    422,
    ['items.0.data.email', 'items.2.id', 'items.3.data.x'],
  ])
  expect(await listAll()).toEqual([])
  expect((await send([create({}), create({})], { atomic: true })).status).toBe(200)
})

test('items see the changes of earlier items', async () => {
  const results = await resultsOf([
    create({ external_id: 'a' }),
    create({ external_id: 'a' }),
    upsert('a', { full_name: 'Bo' }),
    update(undefined, { external_id: 'a', email: 'a@example.com' }),
    create({ email: 'a@example.com' }),
  ])
  expect(results.map(({ status }) => status)).toEqual([201, 422, 200, 200, 422])
  const [a] = await listAll()
  expect(a).toEqual(results[3].record)
  expect(a).toMatchObject({ full_name: 'Bo', email: 'a@example.com' })

  const moved = await resultsOf([
    update(a.id, { external_id: 'b' }),
    upsert('a'),
    upsert('b', { full_name: 'Cy' }),
    update(a.id, { external_id: null }),
    upsert('b'),
  ])
  expect(moved.map(({ status }) => status)).toEqual([200, 201, 200, 200, 201])
  expect(moved[2].record.id).toBe(a.id)
  expect(new Set(moved.map(({ record }) => record.id)).size).toBe(3)
})

test('IDs in upper case name the same record', async () => {
  const { id } = await newParticipant(client)
  expect(await statusesOf([update(id.toUpperCase(), { phone: '1' })])).toEqual([200])
  expect((await client.get(`/participants/${id}`)).body.phone).toBe('1')
})

test('batches at once create each external ID once, and none fails', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `n${index}`)
  const orders = [names, names.toReversed(), names, names.toReversed()]
  const answers = await Promise.all(
    orders.map((order, phone) => send(order.map((name) => upsert(name, { phone: `${phone}` })))),
  )
  const statuses = answers.flatMap(({ body }) => body.results.map(({ status }: Body) => status))
  expect(statuses.toSorted()).toEqual([...Array(60).fill(200), ...Array(20).fill(201)])
  expect((await listAll()).map(({ external_id }) => external_id).toSorted()).toEqual(
    names.toSorted(),
  )
})

test('batches at once lock the jobs of applications in the same order', async () => {
  const jobs = [await newJob(client), await newJob(client)]
  const people = await Promise.all(Array.from({ length: 4 }, () => newParticipant(client)))
  const answers = await Promise.all(
    people.map((person, index) => {
      const items = jobs.map(({ id }) => ({
        action: 'create',
        data: { job_id: id, participant_id: person.id },
      }))
      return client.post('/job-applications/batch', {
        items: index % 2 ? items.toReversed() : items,
      })
    }),
  )
  for (const { body } of answers)
    expect(body.results.map(({ status }: Body) => status)).toEqual([201, 201])
})

test('another account is not touched', async () => {
  const other = await newParticipant(await app.newClient(), { external_id: 'theirs' })
  const statuses = await statusesOf([
    update(other.id, { phone: '1' }),
    update(undefined, { external_id: 'theirs', phone: '1' }),
    upsert('theirs'),
  ])
  expect(statuses).toEqual([404, 404, 201])
})

test('a repeat with the same Idempotency-Key gets the same response, and creates nothing', async () => {
  const key = { 'Idempotency-Key': 'batch-1' }
  const body = { items: [create({}), create({ email: 'no' })] }
  const first = await client.post('/participants/batch', body, key)
  const again = await client.post('/participants/batch', body, key)
  expect([again.status, again.text]).toEqual([200, first.text])
  expect(again.headers.get('idempotent-replayed')).toBe('true')
  expect(await listAll()).toHaveLength(1)
})

test('webhooks get one delivery for each event, and none for a refused item', async () => {
  await transaction(app.db, (trx) =>
    insertWebhook(
      writeScope(trx, account.accountId),
      {
        url: 'https://example.com/',
        description: '',
        eventTypes: ['*'],
        ordering: 'by_resource',
        createdBy: null,
      },
      () => 'sealed',
      new Date(),
    ),
  )
  const [ada] = await resultsOf([
    upsert('a'),
    create({ external_id: 'a' }),
    upsert('a', { phone: '1' }),
    create({}),
  ])
  const deliveries = await app.db
    .read('deliveries')
    .where({ account_id: account.accountId })
    .orderBy('id')
  expect(deliveries.map(({ event_type }) => event_type)).toEqual([
    'participant.created',
    'participant.updated',
    'participant.created',
  ])
  // The update waits for the create of the same record.
  expect(deliveries.map(({ next_attempt_at }) => next_attempt_at === null)).toEqual([
    false,
    true,
    false,
  ])
  expect(deliveries[0].ordering_key).toBe(ada.record.id)
})

describe('the other resources', () => {
  interface Kind {
    path: string
    /** The fields of a create. Those of a new record by each call. */
    newBody(): Promise<object>
    change: object
    /** The events of the change. */
    events: string[]
    /** A field that only a create accepts, with another valid value. */
    fixed?: () => Promise<object>
  }
  const kinds: Kind[] = [
    {
      path: '/tasks',
      newBody: async () => ({ title: 'T', participant_id: (await newParticipant(client)).id }),
      change: { status: 'completed' },
      events: ['task.updated', 'task.completed'],
    },
    {
      path: '/jobs',
      newBody: async () => ({ title: 'J', status: 'open' }),
      change: { title: 'K' },
      events: ['job.updated'],
    },
    {
      path: '/job-applications',
      newBody: () => newApplicationBody(client),
      change: { status: 'shortlisted' },
      events: ['job_application.updated', 'job_application.status_changed'],
      fixed: async () => ({ job_id: (await newJob(client)).id }),
    },
    {
      path: '/payments',
      newBody: async () => ({
        participant_id: (await newParticipant(client)).id,
        amount_minor: 100,
        currency: 'EUR',
      }),
      change: { status: 'paid' },
      events: ['payment.updated', 'payment.paid'],
      fixed: async () => ({ participant_id: (await newParticipant(client)).id }),
    },
  ]

  test.each(kinds)('$path: create, update and upsert', async ({ path, newBody, ...kind }) => {
    const body = { ...(await newBody()), external_id: 'a' }
    const batch = async (...items: object[]): Promise<Body[]> =>
      (await expectSuccess(client.post(`${path}/batch`, { items }))).results
    const [created, same] = await batch(
      { action: 'upsert', data: body },
      { action: 'upsert', data: body },
    )
    expect([created.status, same]).toEqual([201, { status: 200, record: created.record }])
    const { id } = created.record
    const [changed, unknown] = await batch(
      { action: 'update', data: { external_id: 'a', ...kind.change } },
      { action: 'update', id: UNKNOWN_ID, data: kind.change },
    )
    expect(changed).toMatchObject({ status: 200, record: kind.change })
    expect(unknown).toEqual({ status: 404, message: expect.stringMatching(/^There is no such /) })
    expect((await client.get(`${path}/${id}`)).body).toEqual(changed.record)
    expect((await eventsAbout(client, id)).slice(1)).toEqual(kind.events)
    if (!kind.fixed) return
    const other = await kind.fixed()
    const [refused] = await batch({ action: 'upsert', data: { ...body, ...other } })
    expect(refused).toMatchObject({
      status: 422,
      errors: { [String(Object.keys(other))]: ['cannot be changed by an upsert.'] },
    })
  })
})

describe('limits', () => {
  test('each record may have 40 KiB', async () => {
    const task = (description: string) => ({ action: 'create', data: { title: 'T', description } })
    const large = '\u0001'.repeat(6_000)
    const items = [task(`${large}${'x'.repeat(4_000)}`), task(large), task('\u0001'.repeat(10_000))]
    const { body } = await client.post('/tasks/batch', { items })
    expect(body.results.map(({ status }: Body) => status)).toEqual([201, 201, 422])
    expect(Object.keys(body.results[2].errors)).toEqual(['description'])
    expect((await client.get('/tasks')).body.meta.total).toBe(2)
  })

  test('100 items are done, and 101 refused', async () => {
    // The response is larger than a record may be.
    const tags = Array.from({ length: 10 }, (_, index) => `${index}`.padEnd(50, 'x'))
    const items = Array.from({ length: 100 }, () => create({ tags }))
    expect(await statusesOf(items)).toEqual(Array(100).fill(201))
    expect(statusAndFields(await send([...items, create({})]))).toEqual([422, ['items']])
    expect(statusAndFields(await send([]))).toEqual([422, ['items']])
    expect((await client.get('/participants')).body.meta.total).toBe(100)
  })

  test('a body of 4 MiB is accepted, and a larger one gets 413', async () => {
    const body = JSON.stringify({ items: [create({})] })
    const sendText = (bytes: number) =>
      app.call('POST', '/public/v1/participants/batch', {
        key: account.key,
        body: body.padEnd(bytes),
        headers: { 'Content-Type': 'application/json' },
      })
    expect((await sendText(4 * MIB)).status).toBe(200)
    expect(await sendText(4 * MIB + 1)).toMatchObject({
      status: 413,
      body: { message: 'The body is larger than 4 MiB.' },
    })
  })

  test('a batch counts as one request', async () => {
    const remaining = async () =>
      Number((await client.get('/me')).headers.get('x-ratelimit-remaining'))
    const before = await remaining()
    await send([create({}), create({})])
    expect(await remaining()).toBe(before - 2)
  })

  test('a Read Only key gets 403', async () => {
    const reader = app.as({ key: await app.newKey(account, 'read_only') })
    expect((await send([create({})], {}, reader)).status).toBe(403)
  })
})
