/** Two accounts with the same data: neither sees or changes a record of the other. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { OperationId } from '../../generated/operations.ts'
import {
  type Answer,
  type Client,
  operationIds,
  operationOf,
  pathOf,
  sharedApp,
} from '../helpers.ts'
import { filterCasesFor, minuteToMs, type Seeded, seedAll } from '../resources.ts'
import {
  type Body,
  newJob,
  newParticipant,
  newTask,
  operationExample,
  UNKNOWN_ID,
} from './new-records.ts'

interface Tenant {
  client: Client
  seeded: Seeded
  /** The ID of the first record of each resource, by the name of its path parameter. */
  ids: Record<string, string>
}

let clock = minuteToMs(0)
let one: Tenant
let other: Tenant

const app = sharedApp({ now: () => new Date(clock) })
beforeAll(async () => {
  one = await newTenant()
  other = await newTenant()
})

async function newTenant(): Promise<Tenant> {
  const client = await app.newClient()
  const seeded = await seedAll(client, (minute) => {
    clock = minuteToMs(minute)
  })
  const [event] = (await client.get('/events?page[size]=1')).body.data
  const ids = Object.entries(seeded).map(([type, [record]]) => [type, record.id])
  return { client, seeded, ids: { ...Object.fromEntries(ids), event: event.id } }
}

const recordOperationIds = operationIds.filter((id) => operationOf(id).path.includes('{'))
const listIds = operationIds.filter(
  (id) => 'page[size]' in operationOf(id).query && id !== 'listEventTypes',
)

/** Sends a request of the operation for a record. */
function send(
  { client }: Tenant,
  id: OperationId,
  recordId: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const { method } = operationOf(id)
  const path = pathOf(id).replace(/\{.*?\}/, recordId)
  if (method === 'patch' || method === 'post')
    return client[method](path, operationExample(operationOf(id)) ?? {}, headers)
  if (method === 'get' || method === 'delete') return client[method](path, headers)
  throw new Error(`${id}: this test cannot send ${method}`)
}

/** The text of every list of the account. */
async function readAllLists({ client }: Tenant): Promise<string[]> {
  const texts = listIds.map(async (id) => {
    const { text } = await client.get(`${pathOf(id)}?page[size]=100`)
    // Depends on the time of the request.
    return text.replace(/"complete_until":"[^"]*"/, '')
  })
  return Promise.all(texts)
}

/** The ETag of the record that the operation reads or changes, or a made-up one when no operation
 *  returns it. */
async function findEtag(tenant: Tenant, id: OperationId, recordId: string): Promise<string> {
  const getter = recordOperationIds.find((other) => {
    const { method, etag } = operationOf(other)
    return method === 'get' && etag && pathOf(other) === pathOf(id)
  })
  const response = getter && (await send(tenant, getter, recordId))
  return response?.headers.get('etag') ?? '"none"'
}

describe.each(recordOperationIds)('%s', (id) => {
  const parameter = /\{(.*?)(?:_id)?\}/.exec(pathOf(id))?.[1] ?? ''

  test('another account’s ID → the same 404 as an unknown ID, with every precondition header, and no change', async () => {
    const recordId = one.ids[parameter]
    if (recordId === undefined) throw new Error(`{${parameter}} of ${id} names no resource`)
    const before = await readAllLists(one)
    const unknown = await send(other, id, UNKNOWN_ID)
    expect(unknown.status).toBe(404)

    const etag = await findEtag(one, id, recordId)
    const preconditions: Record<string, string>[] = [
      {},
      { 'If-Match': etag },
      { 'If-Match': '*' },
      { 'If-None-Match': etag },
      { 'If-None-Match': '*' },
    ]
    for (const headers of preconditions) {
      const answer = await send(other, id, recordId, headers)
      expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([
        404,
        unknown.text,
        null,
      ])
    }
    expect(await readAllLists(one)).toEqual(before)
  })
})

describe.each(listIds)('%s', (id) => {
  const list = async (
    { client }: Tenant,
    query: string,
  ): Promise<{ total: number; ids: string[] }> => {
    const { status, body } = await client.get(`${pathOf(id)}?page[size]=100&${query}`)
    expect(status).toBe(200)
    return { total: body.meta.total, ids: body.data.map((record: Body) => record.id) }
  }
  const { filters, sorts } = operationOf(id)

  test('every sort → only the records of the account, which `total` counts', async () => {
    const unsorted = await list(one, '')
    expect(unsorted.ids.length).toBeGreaterThan(0)
    for (const sort of sorts.flatMap((field) => [field, `-${field}`])) {
      const query = `sort=${sort}`
      const [ofOne, ofOther] = [await list(one, query), await list(other, query)]
      expect(ofOne.ids.toSorted()).toEqual(unsorted.ids.toSorted())
      expect([ofOne.total, ofOther.total]).toEqual([unsorted.ids.length, unsorted.ids.length])
      expect(ofOne.ids.filter((recordId) => ofOther.ids.includes(recordId))).toEqual([])
    }
  })

  test.each(Object.keys(filters))(
    'filter[%s] → only the records of the account, also for an ID of the other account',
    async (name) => {
      let matched = 0
      for (const [value] of filterCasesFor(id)[name] ?? []) {
        if (typeof value === 'string') {
          const query = `filter[${name}]=${value}`
          const [ofOne, ofOther] = [await list(one, query), await list(other, query)]
          expect(ofOne.total).toBe(ofOther.total)
          expect(ofOne.ids.filter((recordId) => ofOther.ids.includes(recordId))).toEqual([])
          matched += ofOne.total
        } else {
          const query = `filter[${name}]=${value(other.seeded)}`
          expect(await list(one, query)).toEqual({ total: 0, ids: [] })
          matched += (await list(other, query)).total
        }
      }
      expect(matched).toBeGreaterThan(0)
    },
  )
})

test('the same Idempotency-Key and body in two accounts → one record and one response for each', async () => {
  const headers = { 'Idempotency-Key': 'shared-by-chance' }
  const create = ({ client }: Tenant): Promise<Answer> =>
    client.post('/jobs', { title: 'Interpreter' }, headers)
  const [first, second] = [await create(one), await create(other)]
  expect([first.status, second.status, second.headers.get('idempotent-replayed')]).toEqual([
    201,
    201,
    null,
  ])
  expect(second.body.id).not.toBe(first.body.id)
  expect([(await create(one)).body.id, (await create(other)).body.id]).toEqual([
    first.body.id,
    second.body.id,
  ])
  expect((await one.client.get(`/jobs/${second.body.id}`)).status).toBe(404)
})

test('deleteParticipant, deleteTask, deleteJob: references in other accounts neither block nor change', async () => {
  const client = await app.newClient()
  const participant = await newParticipant(client, {
    email: 'ada@example.com',
    external_id: 'crm-1815',
    tags: ['vip'],
  })
  const [task, job] = [await newTask(client), await newJob(client)]
  const before = await Promise.all([readAllLists(one), readAllLists(other)])
  for (const path of [`/participants/${participant.id}`, `/tasks/${task.id}`, `/jobs/${job.id}`])
    expect((await client.delete(path)).status).toBe(204)
  expect(await Promise.all([readAllLists(one), readAllLists(other)])).toEqual(before)
})

test('no record refers to a record of another account', async () => {
  const references = [
    ['tasks', 'participant_id', 'participants'],
    ['job_applications', 'job_id', 'jobs'],
    ['job_applications', 'participant_id', 'participants'],
    ['payments', 'participant_id', 'participants'],
    ['payments', 'task_id', 'tasks'],
    ['participant_tags', 'participant_id', 'participants'],
  ]
  for (const [table, column, target] of references) {
    const crossing = await app.db
      .read(`${table} as source`)
      .join(`${target} as target`, 'target.id', `source.${column}`)
      .whereRaw('source.account_id <> target.account_id')
    expect(crossing).toEqual([])
  }
})
