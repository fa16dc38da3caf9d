/** Two accounts with the same data: nothing of one ever shows in the other, or changes through it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import contract from '../../generated/openapi.json' with { type: 'json' }
import { type Operation, type OperationId, operations } from '../../generated/operations.ts'
import { type Answer, type Client, operationIds, startApp, type TestApp } from '../helpers.ts'
import {
  type Body,
  exampleOf,
  made,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
  UNKNOWN_ID,
} from './made.ts'

interface Holder {
  client: Client
  /** By the name of the path parameter that takes it. */
  ids: Record<string, string>
}

let app: TestApp
let one: Holder
let other: Holder

beforeAll(async () => {
  app = await startApp()
  one = await newHolder()
  other = await newHolder()
})
afterAll(() => app?.[Symbol.asyncDispose]())

async function newHolder(): Promise<Holder> {
  const client = app.as(await app.newAccount())
  const participant = await newParticipant(client, {
    email: 'ada@example.com',
    external_id: 'crm-1815',
    tags: ['vip'],
  })
  const task = await newTask(client, {
    participant_id: participant.id,
    due_at: '2026-03-09T17:00:00Z',
  })
  const job = await newJob(client, exampleOf('JobCreate'))
  const application = await newApplication(client, {
    job_id: job.id,
    participant_id: participant.id,
    answers: { speaks_french: true, years: 5 },
  })
  const payment = await newPayment(client, { participant_id: participant.id, task_id: task.id })
  const requested = await made(client.post('/exports', exampleOf('ExportCreate')))
  const [event] = (await client.get('/events?page[size]=1')).body.data
  const ids = {
    participant: participant.id,
    task: task.id,
    job: job.id,
    job_application: application.id,
    payment: payment.id,
    export: requested.id,
    event: event.id,
  }
  return { client, ids }
}

const tableOf: Record<string, Operation> = operations
const operationOf = (id: OperationId): Operation => tableOf[id] as Operation
const pathOf = (id: OperationId): string => operationOf(id).path.replace('/public/v1', '')
const onRecords = operationIds.filter((id) => operationOf(id).path.includes('{'))
const lists = operationIds.filter(
  (id) => operationOf(id).method === 'get' && !onRecords.includes(id) && id !== 'listEventTypes',
)

/** The contract's own example of an operation's body. */
function bodyOf(id: OperationId): Body {
  const { path, method } = operationOf(id)
  const paths: Record<
    string,
    Record<string, { requestBody?: { $ref: string } }>
  > = contract.paths as never
  const reference = paths[path]?.[method]?.requestBody?.$ref
  return reference && exampleOf(reference.split('/').at(-1) as Parameters<typeof exampleOf>[0])
}

/** Does the operation to the record of that id, as an account. */
function operate(
  { client }: Holder,
  id: OperationId,
  recordId: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const { method } = operationOf(id)
  const path = pathOf(id).replace(/\{.*?\}/, recordId)
  if (method === 'patch' || method === 'post')
    return client[method](path, bodyOf(id) ?? {}, headers)
  if (method === 'get' || method === 'delete') return client[method](path, headers)
  throw new Error(`${id} has a method that is not thought of here: ${method}`)
}

/** Everything that an account can see. */
async function everythingOf({ client }: Holder): Promise<string[]> {
  const answers = lists.map(async (id) => (await client.get(`${pathOf(id)}?page[size]=100`)).text)
  return Promise.all(answers)
}

describe.each(onRecords)('%s', (id) => {
  const parameter = /\{(.*?)\}/.exec(operationOf(id).path)?.[1] ?? ''

  test('another account’s id → the 404 of an unknown id, whatever version is asked for, and nothing is changed', async () => {
    const recordId = one.ids[parameter]
    if (recordId === undefined) throw new Error(`The accounts here have no ${parameter}`)
    const before = await everythingOf(one)
    const unknown = await operate(other, id, UNKNOWN_ID)
    expect(unknown.status).toBe(404)

    const getter =
      onRecords.find(
        (get) =>
          operationOf(get).etag && operationOf(get).method === 'get' && pathOf(get) === pathOf(id),
      ) ?? id
    const etag = (await operate(one, getter, recordId)).headers.get('etag') ?? '"none"'
    for (const [name, value] of [
      ['X-No-Version', 'x'],
      ['If-Match', etag],
      ['If-Match', '*'],
      ['If-None-Match', etag],
      ['If-None-Match', '*'],
    ] as const) {
      const answer = await operate(other, id, recordId, { [name]: value })
      expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([
        404,
        unknown.text,
        null,
      ])
    }
    expect(await everythingOf(one)).toEqual(before)
  })
})

/** What filters that are no enumeration are asked for: it matches in both accounts. */
const texts: Record<string, string> = {
  email: 'ADA@example.com',
  external_id: 'crm-1815',
  tag: 'vip',
  search: 'e',
  created_after: '2026-01-01T00:00:00Z',
  created_before: '2999-01-01T00:00:00Z',
  due_after: '2026-01-01T00:00:00Z',
  due_before: '2999-01-01T00:00:00Z',
}

describe.each(lists)('%s', (id) => {
  const list = async (
    { client }: Holder,
    query: string,
  ): Promise<{ total: number; ids: string[] }> => {
    const { status, body } = await client.get(`${pathOf(id)}?page[size]=100&${query}`)
    expect(status).toBe(200)
    return { total: body.meta.total, ids: body.data.map((record: Body) => record.id) }
  }
  const { filters, sorts } = operationOf(id)

  test('in any order → its own alone, and no others are counted', async () => {
    const own = await list(one, '')
    expect(own.ids.length).toBeGreaterThan(0)
    for (const sort of sorts.flatMap((field) => [field, `-${field}`])) {
      const [mine, theirs] = [await list(one, `sort=${sort}`), await list(other, `sort=${sort}`)]
      expect(mine.ids.toSorted()).toEqual(own.ids.toSorted())
      expect([mine.total, theirs.total]).toEqual([own.ids.length, own.ids.length])
      expect(mine.ids.filter((recordId) => theirs.ids.includes(recordId))).toEqual([])
    }
  })

  test.each(Object.entries(filters))(
    'filter[%s] → its own alone, and nothing for what only the other account has',
    async (name, { options }) => {
      const foreign = Object.entries(other.ids).find(([resource]) => name === `${resource}_id`)?.[1]
      if (foreign !== undefined || name === 'resource_id') {
        const recordId = foreign ?? other.ids.participant
        expect(await list(one, `filter[${name}]=${recordId}`)).toEqual({ total: 0, ids: [] })
        expect((await list(other, `filter[${name}]=${recordId}`)).total).toBeGreaterThan(0)
        return
      }
      const values = options ?? [texts[name]]
      const matched: string[] = []
      for (const value of values) {
        if (value === undefined) throw new Error(`filter[${name}] has no value here`)
        const [mine, theirs] = [
          await list(one, `filter[${name}]=${value}`),
          await list(other, `filter[${name}]=${value}`),
        ]
        expect(mine.total).toBe(theirs.total)
        expect(mine.ids.filter((recordId) => theirs.ids.includes(recordId))).toEqual([])
        matched.push(...mine.ids)
        // One currency is as good as another.
        if (matched.length > 0) break
      }
      expect(matched.length).toBeGreaterThan(0)
    },
  )
})

test('an Idempotency-Key and the same body in both accounts → each has a record and an answer of its own', async () => {
  const headers = { 'Idempotency-Key': 'shared-by-chance' }
  const create = ({ client }: Holder): Promise<Answer> =>
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

test('deleteParticipant, deleteTask, deleteJob: only what the own account has stands in the way, or lets go', async () => {
  const client = app.as(await app.newAccount())
  const participant = await newParticipant(client, {
    email: 'ada@example.com',
    external_id: 'crm-1815',
    tags: ['vip'],
  })
  const [task, job] = [await newTask(client), await newJob(client)]
  const before = await Promise.all([everythingOf(one), everythingOf(other)])
  for (const path of [`/participants/${participant.id}`, `/tasks/${task.id}`, `/jobs/${job.id}`])
    expect((await client.delete(path)).status).toBe(204)
  expect(await Promise.all([everythingOf(one), everythingOf(other)])).toEqual(before)
})

test('no record refers to one of another account', async () => {
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
