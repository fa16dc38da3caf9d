/** A record is at most 40 KiB as JSON when it is written. */
import { beforeAll, expect, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { eventsAbout } from './new-records.ts'

const MAX_BYTES = 40 * 1024
/** JSON writes this character with six bytes. */
const SIX_BYTES = '\u0001'
/** The longest description, which makes a record larger than the limit. */
const LONGEST = SIX_BYTES.repeat(10_000)

let client: Client
const app = sharedApp()
beforeAll(async () => {
  client = await app.newClient()
})

const bytesOf = (record: object): number => Buffer.byteLength(JSON.stringify(record))
/** The response to a record that is larger than the limit by `excess`. */
const tooLarge = (field: string, excess: string) => ({
  status: 422,
  body: {
    message: 'The input is invalid.',
    errors: {
      [field]: [`makes the record larger than 40 KiB as JSON. Shorten it by ${excess}.`],
    },
  },
})

/** The fields of a task whose JSON has `bytes` bytes. */
async function fieldsOfSize(bytes: number): Promise<{ title: string; description: string }> {
  const { body: empty } = await client.post('/tasks', { title: 'T' })
  const length = bytes - bytesOf(empty)
  const wide = SIX_BYTES.repeat(Math.floor(length / 6))
  return { title: 'T', description: `${wide}${'x'.repeat(length % 6)}` }
}

/** A task that exceeds the limit, as if the contract had a new field since. */
async function newLargeTask(): Promise<{ id: string }> {
  const { body } = await client.post('/tasks', { title: 'Large' })
  await app.db.write('tasks').where({ id: body.id }).update({ description: LONGEST })
  return body
}

test('createTask: a record of 40 KiB → 201, and one byte more → 422 on the largest field', async () => {
  const task = await fieldsOfSize(MAX_BYTES)
  const created = await client.post('/tasks', task)
  expect([created.status, bytesOf(created.body)]).toEqual([201, MAX_BYTES])
  const { body: list } = await client.get('/tasks')
  expect(await client.post('/tasks', { ...task, title: 'TT' })).toMatchObject(
    tooLarge('description', '1 byte'),
  )
  expect((await client.get('/tasks')).body.meta.total).toBe(list.meta.total)
})

test('updateTask: 422 on the field that has grown, and nothing changes', async () => {
  const { body } = await client.post('/tasks', await fieldsOfSize(MAX_BYTES))
  const path = `/tasks/${body.id}`
  expect(await client.patch(path, { title: 'x'.repeat(101) })).toMatchObject(
    tooLarge('title', '100 bytes'),
  )
  expect((await client.get(path)).body).toEqual(body)
  expect(await eventsAbout(client, body.id)).toEqual(['task.created'])
})

test('createJob: 422 on screening_questions', async () => {
  const question = { label: 'L', requirement: 'must_have', expected: 'x'.repeat(2_000) }
  const screening_questions = Array.from({ length: 21 }, (_, index) => ({
    ...question,
    key: `question_${index}`,
  }))
  const { status, body } = await client.post('/jobs', { title: 'J', screening_questions })
  expect([status, Object.keys(body.errors)]).toEqual([422, ['screening_questions']])
})

test('a stored record above the limit can be read, completed and made smaller, but not larger', async () => {
  const { id } = await newLargeTask()
  const path = `/tasks/${id}`
  expect((await client.get(path)).body.description).toBe(LONGEST)
  expect((await client.patch(path, { status: 'completed' })).status).toBe(200)
  expect((await client.patch(path, { description: LONGEST.slice(1) })).status).toBe(200)
  const { status, body } = await client.patch(path, { description: LONGEST })
  expect([status, Object.keys(body.errors)]).toEqual([422, ['description']])
  expect((await client.patch(path, { description: '' })).status).toBe(200)
})
