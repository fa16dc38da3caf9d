/** The quotas of records and of events of an account. */
import { expect, test } from 'vitest'
import { sharedApp } from '../helpers.ts'
import { UNKNOWN_ID } from './new-records.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** The next midnight (UTC). The service counts the events of a day by their IDs, which have the
 *  time of the machine, so `clock` must be on the day of the machine. */
const MIDNIGHT = Math.ceil(Date.now() / DAY_MS) * DAY_MS

let clock = MIDNIGHT - 2 * HOUR_MS
const app = sharedApp({
  now: () => new Date(clock),
  environment: { RECORDS_PER_ACCOUNT: '3', EVENTS_PER_ACCOUNT_AND_DAY: '6' },
})

test('records: a create above the quota gets 422; a repeat and an update do not', async () => {
  const client = await app.newClient()
  const create = (headers = {}) => client.post('/tasks', { title: 'T' }, headers)
  const first = await create({ 'Idempotency-Key': 'first' })
  await create()
  await create()
  const refused = await create()
  expect(refused).toMatchObject({
    status: 422,
    body: { errors: { records: [expect.stringMatching(/^Your account may have 3 records\./)] } },
  })
  expect(await create({ 'Idempotency-Key': 'first' })).toMatchObject({
    status: 201,
    body: first.body,
  })
  const path = `/tasks/${first.body.id}`
  expect((await client.patch(path, { title: 'U' })).status).toBe(200)
  expect((await (await app.newClient()).post('/tasks', { title: 'T' })).status).toBe(201)

  await client.delete(path)
  // The service counts the records again after a minute.
  clock += MINUTE_MS
  expect((await create()).status).toBe(201)
})

test('records: of concurrent creates, only as many succeed as the quota permits', async () => {
  const client = await app.newClient()
  const creations = Array.from({ length: 8 }, () => client.post('/tasks', { title: 'T' }))
  const statuses = (await Promise.all(creations)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([201, 201, 201, 422, 422, 422, 422, 422])
  expect((await client.get('/tasks')).body.meta.total).toBe(3)
})

test('records and events: a refused create does not count', async () => {
  const client = await app.newClient()
  const create = async (fields: object): Promise<number> =>
    (await client.post('/tasks', { title: 'T', ...fields })).status
  for (let count = 0; count < 10; count++)
    expect(await create({ participant_id: UNKNOWN_ID })).toBe(422)
  for (let count = 0; count < 3; count++) expect(await create({})).toBe(201)
})

test('records: a batch creates as many as the quota permits, and an atomic one none', async () => {
  const client = await app.newClient()
  const items = Array.from({ length: 4 }, () => ({ action: 'create', data: { full_name: 'A' } }))
  const send = (atomic: boolean) => client.post('/participants/batch', { atomic, items })
  expect(await send(true)).toMatchObject({
    status: 422,
    body: { errors: { 'items.3.records': [expect.stringContaining('3 records')] } },
  })
  const { body } = await send(false)
  expect(body.results.map(({ status }: { status: number }) => status)).toEqual([201, 201, 201, 422])
  expect(Object.keys(body.results[3].errors)).toEqual(['records'])
})

test('events: items above the quota of the day get 429, and so does an atomic batch', async () => {
  const client = await app.newClient()
  const { body: created } = await client.post('/participants', { full_name: 'A' })
  const items = Array.from({ length: 7 }, (_, index) => ({
    action: 'update',
    id: created.id,
    data: { phone: `${index}` },
  }))
  const send = (atomic: boolean) => client.post('/participants/batch', { atomic, items })
  expect((await send(true)).status).toBe(429)
  const { body } = await send(false)
  const statuses = body.results.map(({ status }: { status: number }) => status)
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
})

test('events: changes above the quota of the day get 429 until midnight UTC; reads do not', async () => {
  const client = await app.newClient()
  const { body } = await client.post('/tasks', { title: 'T' })
  const rename = (title: string) => client.patch(`/tasks/${body.id}`, { title })
  for (const title of ['U', 'V', 'W', 'X', 'Y']) expect((await rename(title)).status).toBe(200)
  const refused = await rename('Z')
  expect(refused).toMatchObject({
    status: 429,
    body: { message: expect.stringMatching(/^Your account may cause 6 events a day\./) },
  })
  expect(Number(refused.headers.get('retry-after'))).toBe((MIDNIGHT - clock) / 1_000)
  expect((await client.get(`/tasks/${body.id}`)).body.title).toBe('Y')
  clock += 3 * HOUR_MS
  expect((await rename('Z')).status).toBe(200)
})
