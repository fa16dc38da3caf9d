/** What all lists have in common: service-spec §2 "List response envelope" and §4 "Query
 *  parameters". */
import { beforeAll, describe, expect, test } from 'vitest'
import { newParticipant } from '../handlers/new-records.ts'
import {
  type Answer,
  type Client,
  operationIds,
  operationOf,
  pathOf,
  sharedApp,
} from '../helpers.ts'
import { createOneOfEach } from '../resources.ts'

const MINUTE_MS = 60_000
/** One more than the default page size. */
const PARTICIPANT_COUNT = 26

let clock = Date.parse('2026-03-02T09:00:00.000Z')
let client: Client
const app = sharedApp({ now: () => new Date(clock) })
beforeAll(async () => {
  client = await app.newClient()
  await createOneOfEach(client)
  const { total } = (await client.get('/participants')).body.meta
  for (let count = total; count < PARTICIPANT_COUNT; count++)
    await newParticipant(client, { status: count % 2 ? 'active' : 'inactive' })
  for (const resource of ['tasks', 'jobs']) {
    clock += MINUTE_MS
    await client.post('/exports', { resource, format: 'csv' })
  }
})

const lists = operationIds
  .map((id) => ({ ...operationOf(id), id, path: pathOf(id) }))
  .filter(({ query }) => 'page[size]' in query)
const filterNames = new Set(lists.flatMap(({ filters }) => Object.keys(filters)))

/** The status, and the fields that a 422 names. */
const outcome = ({ status, body }: Answer): unknown[] => [status, ...Object.keys(body.errors ?? {})]

describe.each(lists)('$id', ({ path, sorts, filters }) => {
  test('the envelope has data and the five fields of meta, by default of page 1 with 25 records', async () => {
    const { status, body } = await client.get(path)
    const { data, meta } = body
    expect([status, Object.keys(body)]).toEqual([200, ['data', 'meta']])
    expect(meta).toEqual({
      current_page: 1,
      last_page: Math.ceil(meta.total / 25),
      per_page: 25,
      total: expect.any(Number),
      allowed_sorts: sorts,
      next_cursor: meta.total > 25 ? expect.any(String) : null,
      complete_until: 'created_from' in filters ? expect.any(String) : null,
    })
    expect(data).toHaveLength(Math.min(meta.total, 25))
    expect(meta.total).toBeGreaterThan(0)
  })

  test('page[size] is 1 to 100', async () => {
    for (const size of [1, 100]) {
      const { status, body } = await client.get(`${path}?page[size]=${size}`)
      expect([status, body.meta.per_page]).toEqual([200, size])
      expect(body.data).toHaveLength(Math.min(body.meta.total, size))
    }
    for (const size of [0, 101])
      expect(outcome(await client.get(`${path}?page[size]=${size}`))).toEqual([422, 'page[size]'])
  })

  test('sort accepts the fields of meta.allowed_sorts, with and without -, and no others', async () => {
    const { meta } = (await client.get(path)).body
    for (const field of meta.allowed_sorts)
      for (const sort of [field, `-${field}`])
        expect((await client.get(`${path}?sort=${sort}`)).status).toBe(200)
    const others = ['id', 'created_at', 'name'].filter(
      (field) => !meta.allowed_sorts.includes(field),
    )
    for (const sort of others)
      expect(outcome(await client.get(`${path}?sort=${sort}`))).toEqual([422, 'sort'])
  })

  test('filters of other lists are refused', async () => {
    for (const name of [...filterNames].filter((name) => !(name in filters)))
      expect(outcome(await client.get(`${path}?filter[${name}]=active`))).toEqual([
        422,
        `filter[${name}]`,
      ])
  })
})

test('listParticipants: each page until current_page equals last_page has other records', async () => {
  const ids: string[] = []
  for (let page = 1; ; page++) {
    const { data, meta } = (await client.get(`/participants?page[number]=${page}`)).body
    expect(meta.current_page).toBe(page)
    ids.push(...data.map(({ id }: { id: string }) => id))
    if (meta.current_page === meta.last_page) break
  }
  expect([ids.length, new Set(ids).size]).toEqual([PARTICIPANT_COUNT, PARTICIPANT_COUNT])
})

test('listParticipants: filter[status]=active', async () => {
  const { data, meta } = (await client.get('/participants?filter[status]=active')).body
  expect(new Set(data.map(({ status }: { status: string }) => status))).toEqual(new Set(['active']))
  expect(meta.total).toBeLessThan(PARTICIPANT_COUNT)
})

test('listParticipants: each record has a UUID and a full_name', async () => {
  for (const { id, full_name } of (await client.get('/participants')).body.data) {
    expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/)
    expect(full_name).toBe('Ada Lovelace')
  }
})

test('listExports: sort=created_at and sort=-created_at', async () => {
  const resources = async (sort: string): Promise<string[]> =>
    (await client.get(`/exports?sort=${sort}`)).body.data.map(
      ({ resource }: { resource: string }) => resource,
    )
  expect(await resources('created_at')).toEqual(['participants', 'tasks', 'jobs'])
  expect(await resources('-created_at')).toEqual(['jobs', 'tasks', 'participants'])
})

test('every path begins with /public/v1', async () => {
  for (const id of operationIds) expect(operationOf(id).path).toMatch(/^\/public\/v1(\/|$)/)
  const { key } = await app.newAccount()
  for (const path of ['/participants', '/v1/participants', '/public/participants'])
    expect((await app.call('GET', path, { key })).status).toBe(404)
})
