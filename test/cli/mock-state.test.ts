import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyWebhook } from '../../client/src/webhook.ts'
import { resources } from '../../generated/resources.ts'
import { responses } from '../../generated/validators.js'
import { newSecret } from '../../webhooks/transport/secret.ts'
import { expectSuccess, newParticipant, newTask } from '../handlers/new-records.ts'
import { type Answer, type Client, until } from '../helpers.ts'
import { type Receiver, startReceiver } from '../receiver.ts'
import { fixtureFor, sendCreate } from '../resources.ts'
import { type Muster, newMuster, waitForDocument } from './muster.ts'

const UNKNOWN = '019cade2-11c0-7e52-9c30-4f8a2e7d5b19'
const secret = newSecret()
let muster: Muster
let receiver: Receiver
let client: Client

beforeAll(async () => {
  receiver = await startReceiver()
  muster = await newMuster()
  const started = muster.start([
    ...['mock', '--stateful', '--port', '0', '--json'],
    ...['--webhook', receiver.url, '--secret', secret],
  ])
  const { url, secret: printed } = await waitForDocument(started)
  expect(printed).toBe(secret)
  client = newClient(`${url}/public/v1`)
})
afterAll(async () => {
  await muster?.[Symbol.asyncDispose]()
  // Throws if a delivery broke asyncapi.yaml.
  await receiver?.[Symbol.asyncDispose]()
})

function newClient(url: string): Client {
  const send = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: unknown,
  ): Promise<Answer> => {
    const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const response = await fetch(url + path, {
      method,
      headers: { Authorization: 'Bearer any', ...type, ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await response.text()
    const isJson = /json/.test(response.headers.get('content-type') ?? '')
    const json = isJson ? JSON.parse(text) : undefined
    return { status: response.status, headers: response.headers, text, body: json }
  }
  return {
    get: (path, headers) => send('GET', path, headers),
    post: (path, body, headers) => send('POST', path, headers, body),
    patch: (path, body, headers) => send('PATCH', path, headers, body),
    delete: (path, headers) => send('DELETE', path, headers),
  }
}

const creatable = resources.filter(({ operations }) => operations.create !== null)

describe.each(creatable)('$slug', ({ slug, type, operations }) => {
  const { create, get, list, delete: remove } = operations
  it('creates a record, returns it, lists it and deletes it', async () => {
    const body = await fixtureFor({ slug, type }).newBody(client)
    const created = await sendCreate(client, { slug, type }, body)
    expect(created.status, created.text).toBe(201)
    expect(created.body).toMatchObject(body)
    const path = `/${slug}/${created.body.id}`
    expect(created.headers.get('location')).toBe(`/public/v1${path}`)

    const stored = await client.get(path)
    expect(stored.body).toMatchObject({ id: created.body.id, ...body })
    const page = await client.get(`/${slug}`)
    expect(page.body.data).toContainEqual(stored.body)
    for (const [id, { status, body: shown }] of [
      [create, created],
      [get, stored],
      [list, page],
    ] as const) {
      const validator = id && responses[id][status]?.body?.['application/json']
      expect([validator?.(shown), validator?.errors], id ?? '').toEqual([true, null])
    }

    expect(remove).not.toBe(null)
    expect((await client.delete(path)).status).toBe(204)
    expect((await client.get(path)).status).toBe(404)
    expect((await client.delete(path)).status).toBe(404)
  })
})

describe('a batch', () => {
  const send = (items: object[], atomic = false) =>
    client.post('/participants/batch', { atomic, items })
  const upsert = (external_id: string, fields = {}) => ({
    action: 'upsert',
    data: { full_name: 'Ada', external_id, ...fields },
  })

  it('creates and updates records, and refuses what the service refuses', async () => {
    const { body } = await send([
      upsert('mock-1'),
      upsert('mock-1', { full_name: 'Bo' }),
      upsert('mock-2', { email: 'no' }),
      { action: 'update', data: { external_id: 'mock-3' } },
    ])
    const [created, updated, invalid, unknown] = body.results
    expect([created.status, updated.status, updated.record.full_name]).toEqual([201, 200, 'Bo'])
    expect(invalid).toMatchObject({ status: 422, errors: { email: [expect.any(String)] } })
    expect(unknown).toEqual({ status: 404, message: 'There is no such participant.' })
    const stored = await client.get(`/participants/${created.record.id}`)
    expect(stored.body).toEqual(updated.record)
  })

  it('atomic: a refused item undoes the others', async () => {
    const refused = await send([upsert('mock-4'), upsert('mock-5', { email: 'no' })], true)
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([
      422,
      ['items.1.data.email'],
    ])
    expect((await client.get('/participants?filter[external_id]=mock-4')).body.meta.total).toBe(0)
  })
})

describe('a record', () => {
  it('has the defaults of the contract, and the current time', async () => {
    const started = Date.now()
    const task = await newTask(client, { title: 'Call', due_at: '2026-05-01T10:00:00+02:00' })
    expect(task).toMatchObject({
      description: '',
      status: 'open',
      participant_id: null,
      due_at: '2026-05-01T08:00:00.000Z',
      completed_at: null,
    })
    for (const time of [task.created_at, task.updated_at])
      expect(Date.parse(time)).toBeGreaterThanOrEqual(started - 1)
    const [question] = (
      await expectSuccess(
        client.post('/jobs', {
          title: 'J',
          screening_questions: [{ key: 'a', label: 'A', requirement: 'must_have', expected: true }],
        }),
      )
    ).screening_questions
    expect(question.operator).toBe('equals')
  })

  it('PATCH: changes the fields that are sent, with a new ETag', async () => {
    const { id } = await newTask(client, { description: 'Details' })
    const before = await client.get(`/tasks/${id}`)
    const change = { status: 'completed', description: '' }
    const after = await client.patch(`/tasks/${id}`, change)
    expect(after.body).toEqual({
      ...before.body,
      ...change,
      completed_at: expect.stringMatching(/^20/),
      updated_at: expect.stringMatching(/^20/),
    })
    expect((await client.get(`/tasks/${id}`)).headers.get('etag')).toBe(after.headers.get('etag'))
    const old = { 'If-Match': before.headers.get('etag') ?? '' }
    expect(old['If-Match']).not.toBe(after.headers.get('etag'))
    expect((await client.patch(`/tasks/${id}`, { title: 'Late' }, old)).status).toBe(412)
    expect((await client.delete(`/tasks/${id}`, old)).status).toBe(412)
    expect((await client.get(`/tasks/${id}`)).body).toEqual(after.body)
  })

  it('a merge patch removes a part of a field', async () => {
    const body = await fixtureFor({ slug: 'job-applications', type: 'job_application' }).newBody(
      client,
    )
    const answers = { a: 'one', b: 'two' }
    const { id } = await expectSuccess(client.post('/job-applications', { ...body, answers }))
    const type = { 'Content-Type': 'application/merge-patch+json' }
    const changed = await client.patch(`/job-applications/${id}`, { answers: { a: null } }, type)
    expect(changed.body.answers).toEqual({ b: 'two' })
  })

  it('of an export is completed when it is read', async () => {
    const { id, status } = await expectSuccess(
      client.post('/exports', { resource: 'tasks', format: 'json' }),
    )
    const { body } = await client.get(`/exports/${id}`)
    expect([status, body.status]).toEqual(['queued', 'completed'])
    expect(Date.parse(body.expires_at)).toBeGreaterThan(Date.now())
    expect((await client.get(`/exports/${id}/file`)).status).toBe(200)
  })

  it('with an unknown ID: 404 for its path and each path below', async () => {
    for (const path of [`/tasks/${UNKNOWN}`, `/exports/${UNKNOWN}/file`]) {
      const { status, body } = await client.get(path)
      expect([path, status, body]).toEqual([path, 404, { message: 'There is no such record.' }])
    }
    expect((await client.patch(`/tasks/${UNKNOWN}`, { title: 'New' })).status).toBe(404)
  })

  it('is not stored or looked up if Prefer selects an example', async () => {
    expect((await client.get(`/tasks/${UNKNOWN}`, { Prefer: 'code=200' })).status).toBe(200)
    expect((await client.get(`/tasks/${UNKNOWN}`, { Prefer: 'code=429' })).status).toBe(429)
    const total = async () => (await client.get('/tasks')).body.meta.total
    const before = await total()
    await client.post('/tasks', { title: 'Example' }, { Prefer: 'code=201' })
    expect(await total()).toBe(before)
  })
})

it('lists are filtered, sorted and divided into pages', async () => {
  // A random tag, because the tests share one mock.
  const tag = newSecret().replace(/\W/g, '').slice(0, 30)
  for (const full_name of ['Beth', 'Ada', 'Cleo'])
    await newParticipant(client, { full_name, tags: [tag] })
  const list = async (query: string) =>
    (await client.get(`/participants?filter[tag]=${tag}&${query}`)).body
  const names = (page: { data: { full_name: string }[] }) =>
    page.data.map(({ full_name }) => full_name)
  expect(names(await list(''))).toEqual(['Beth', 'Ada', 'Cleo'])
  expect(names(await list('sort=-full_name'))).toEqual(['Cleo', 'Beth', 'Ada'])
  const second = await list('sort=full_name&page[size]=2&page[number]=2')
  expect(names(second)).toEqual(['Cleo'])
  expect(second.meta).toMatchObject({ current_page: 2, last_page: 2, per_page: 2, total: 3 })
  expect(names(await list('filter[status]=archived'))).toEqual([])
})

it('lists are walked by cursor while their records change', async () => {
  const due_at = '2026-03-02T09:30:00.000Z'
  const tag = newSecret().replace(/\W/g, '').slice(0, 30)
  const { id: participant_id } = await newParticipant(client, { tags: [tag] })
  for (const fields of [{}, { due_at }, {}, { due_at }])
    await newTask(client, { participant_id, ...fields })
  const query = `filter[participant_id]=${participant_id}&filter[status]=open&sort=-due_at`
  const walked: (string | null)[] = []
  let url = `/tasks?${query}&page[size]=1`
  for (let page = 1; url !== ''; page++) {
    const { body, headers } = await client.get(url)
    expect(body.meta.current_page).toBe(page)
    const [task] = body.data
    walked.push(task.due_at)
    await client.patch(`/tasks/${task.id}`, { status: 'completed' })
    url = /<\/public\/v1(.*)>/.exec(headers.get('Link') ?? '')?.[1] ?? ''
  }
  expect(walked).toEqual([due_at, due_at, null, null])
  const { next_cursor } = (await client.get('/participants?page[size]=1')).body.meta
  expect((await client.get(`/tasks?page[after]=${next_cursor}`)).status).toBe(422)
})

it('sends the events of a record to the webhook, signed and valid', async () => {
  const { id } = await newTask(client)
  await client.patch(`/tasks/${id}`, { title: 'Renamed' })
  // Changes nothing, so it has no event.
  await client.patch(`/tasks/${id}`, { title: 'Renamed' })
  await client.patch(`/tasks/${id}`, { status: 'completed' })
  await client.delete(`/tasks/${id}`)
  const ofTask = () => receiver.requests.filter(({ body }) => body.includes(id))
  await until('the deliveries arrive', () => ofTask().length >= 5)
  const events = await Promise.all(
    ofTask().map(({ body, headers }) => verifyWebhook(body, headers, secret)),
  )
  expect(events.map(({ event_type }) => event_type).sort()).toEqual(
    ['completed', 'created', 'deleted', 'updated', 'updated'].map((name) => `task.${name}`),
  )
  expect(new Set(events.map((event) => event.id)).size).toBe(5)
})

describe('muster mock', () => {
  it.each([
    [['--secret', secret], "'--secret <secret>' needs option '--webhook <url>'"],
    [['--webhook', 'http://127.0.0.1:1/'], "'--webhook <url>' needs option '--stateful'"],
  ])('refuses %j', async (options, reason) => {
    const { status, stderr } = await muster.run(['mock', ...options])
    expect([status, stderr]).toEqual([2, expect.stringContaining(reason)])
  })
})
