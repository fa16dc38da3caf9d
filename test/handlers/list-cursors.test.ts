/** Walks by cursor while records change, and cursors that a list refuses. */
import fc from 'fast-check'
import { expect, inject, test } from 'vitest'
import { type Answer, type Client, sharedApp } from '../helpers.ts'
import { type Body, newParticipant, newTask } from './new-records.ts'

const app = sharedApp()

interface Page {
  data: Body[]
  meta: { current_page: number; next_cursor: string | null }
}

/** The pages of the list from the one after `cursor`. */
async function* walk(client: Client, path: string, query: string): AsyncGenerator<Page> {
  for (let after = ''; ; ) {
    const { status, body, text } = await client.get(`${path}?${query}${after}`)
    if (status !== 200) throw new Error(text)
    yield body
    if (body.meta.next_cursor === null) return
    after = `&page[after]=${body.meta.next_cursor}`
  }
}

const SORTS = ['', 'title', '-title', 'due_at', '-due_at', 'created_at', '-created_at']
SORTS.push(
  'updated_at',
  '-updated_at',
  'title,-due_at',
  '-due_at,title',
  '-title,due_at,created_at',
)

/** Few values, so that many records have equal ones. */
const fieldsOfTask = fc.record({
  title: fc.constantFrom('a', 'b', 'ä'),
  due_at: fc.constantFrom(null, '2026-03-02T09:30:00.000Z', '2026-03-03T09:30:00.000Z'),
})
const change = fc.oneof(
  fc.record({ kind: fc.constant('create' as const), fields: fieldsOfTask }),
  fc.record({ kind: fc.constant('update' as const), index: fc.nat(), fields: fieldsOfTask }),
  fc.record({ kind: fc.constant('complete' as const), index: fc.nat() }),
  fc.record({ kind: fc.constant('delete' as const), index: fc.nat() }),
)
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

/** Applies the change to one of the tasks. Returns the ID of the changed task. */
async function apply(client: Client, ids: string[], one: Change): Promise<string | undefined> {
  if (one.kind === 'create') return void (await newTask(client, one.fields))
  const id = ids[one.index % ids.length]
  if (id === undefined) return undefined
  if (one.kind === 'delete') await client.delete(`/tasks/${id}`)
  else
    await client.patch(
      `/tasks/${id}`,
      one.kind === 'complete' ? { status: 'completed' } : one.fields,
    )
  return id
}

const scenario = fc.record({
  tasks: fc.array(fieldsOfTask, { minLength: 1, maxLength: 10 }),
  sort: fc.constantFrom(...SORTS),
  filter: fc.constantFrom('', '&filter[status]=open'),
  size: fc.integer({ min: 1, max: 3 }),
  /** The changes after each page. */
  steps: fc.array(fc.array(change, { maxLength: 3 }), { maxLength: 6 }),
})

test('random changes during a walk → each unchanged record once, and by creation each that stays', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async ({ tasks, sort, filter, size, steps }) => {
      const client = await app.newClient()
      const ids: string[] = []
      for (const fields of tasks) ids.push((await newTask(client, fields)).id)
      const seen: string[] = []
      const changed = new Set<string>()
      const left = new Set<string>()
      const query = `page[size]=${size}${filter}${sort && `&sort=${sort}`}`
      for await (const { data, meta } of walk(client, '/tasks', query)) {
        seen.push(...data.map(({ id }) => id))
        for (const one of steps[meta.current_page - 1] ?? []) {
          const id = await apply(client, ids, one)
          if (id === undefined) continue
          changed.add(id)
          if (one.kind === 'delete' || (one.kind === 'complete' && filter)) left.add(id)
        }
      }
      const count = (id: string): number => seen.filter((other) => other === id).length
      const isByCreation = /^$|created_at$/.test(sort) && !sort.includes(',')
      const stable = ids.filter((id) => !(isByCreation ? left : changed).has(id))
      expect(stable.map(count)).toEqual(stable.map(() => 1))
      const others = seen.filter((id) => isByCreation || !changed.has(id))
      expect(others).toEqual([...new Set(others)])
    }),
    { numRuns: 20 },
  )
})

test('random changes during a walk by number → each page is a part of the list at its time', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, fc.boolean(), async ({ tasks, size, steps, ...rest }, isDated) => {
      const client = await app.newClient()
      const ids: string[] = []
      for (const fields of tasks) ids.push((await newTask(client, fields)).id)
      // The total of a list with this filter is counted, and then remembered.
      const dated = isDated ? '&filter[created_after]=2026-01-01T00:00:00Z' : ''
      const query = `${rest.filter}${dated}${rest.sort && `&sort=${rest.sort}`}`
      for (let page = 1; page <= tasks.length; page++) {
        const { body } = await client.get(`/tasks?page[size]=${size}&page[number]=${page}${query}`)
        const whole = (await client.get(`/tasks?page[size]=100${query}`)).body.data
        expect(body.data).toEqual(whole.slice((page - 1) * size, page * size))
        expect(body.meta.total).toBe(whole.length)
        for (const one of steps[page - 1] ?? []) await apply(client, ids, one)
      }
    }),
    { numRuns: 10 },
  )
})

test('a loop that completes or deletes each task of its page → all of them', async () => {
  const client = await app.newClient()
  const ids: string[] = []
  for (let count = 0; count < 12; count++) ids.push((await newTask(client)).id)
  for (const [query, work] of [
    [
      'page[size]=5&filter[status]=open',
      (id) => client.patch(`/tasks/${id}`, { status: 'completed' }),
    ],
    ['page[size]=5', (id) => client.delete(`/tasks/${id}`)],
  ] as [string, (id: string) => Promise<Answer>][]) {
    const seen: string[] = []
    for await (const { data } of walk(client, '/tasks', query))
      for (const { id } of data) {
        seen.push(id)
        await work(id)
      }
    expect(seen).toEqual(ids)
  }
})

test('page[number] starts a walk, and pages may change their size', async () => {
  const client = await app.newClient()
  const ids: string[] = []
  for (let count = 0; count < 6; count++) ids.push((await newTask(client)).id)
  const second = (await client.get('/tasks?page[size]=2&page[number]=2')).body
  const rest = (await client.get(`/tasks?page[size]=3&page[after]=${second.meta.next_cursor}`)).body
  expect([second, rest].flatMap(({ data }) => data.map(({ id }: Body) => id))).toEqual(ids.slice(2))
  expect(rest.meta).toMatchObject({ current_page: 3, next_cursor: null })
})

test('the cursor of another account → records of the own account only', async () => {
  const [owner, stranger] = [await app.newClient(), await app.newClient()]
  for (const client of [owner, stranger])
    for (let count = 0; count < 3; count++) await newTask(client)
  const { next_cursor } = (await owner.get('/tasks?page[size]=1')).body.meta
  const ids = (await stranger.get('/tasks')).body.data.map(({ id }: Body) => id)
  const { data } = (await stranger.get(`/tasks?page[after]=${next_cursor}`)).body
  expect(data.map(({ id }: Body) => id)).toEqual(ids)
})

test('a cursor with other filters, another sort, another list or a page number → 422', async () => {
  const client = await app.newClient()
  for (let count = 0; count < 2; count++) {
    await newTask(client)
    await newParticipant(client)
  }
  const { next_cursor } = (await client.get('/tasks?page[size]=1&filter[status]=open')).body.meta
  const errorsOf = async (path: string): Promise<string> => {
    const { status, body } = await client.get(`${path}page[after]=${next_cursor}`)
    expect([status, Object.keys(body.errors)]).toEqual([422, ['page[after]']])
    return body.errors['page[after]'][0]
  }
  for (const path of [
    '/tasks?',
    '/tasks?filter[status]=open,completed&',
    '/tasks?filter[status]=open&sort=title&',
    '/participants?',
  ])
    expect(await errorsOf(path)).toBe(
      'belongs to another list, or to other filters or another sort. ' +
        'Repeat these as before, or start again without page[after].',
    )
  expect(await errorsOf('/tasks?filter[status]=open&page[number]=1&')).toBe(
    'must not be combined with page[number].',
  )
})

test('a cursor that the service did not return → 422, never 500', async () => {
  const client = await app.newClient()
  for (let count = 0; count < 2; count++) await newTask(client)
  const query = 'page[size]=1&sort=title,due_at,created_at'
  const { next_cursor } = (await client.get(`/tasks?${query}`)).body.meta
  const parts = JSON.parse(Buffer.from(next_cursor, 'base64url').toString())
  const [version, page, digest, values, id] = parts
  const statusOf = async (cursor: string): Promise<number> =>
    (await client.get(`/tasks?${query}&page[after]=${cursor}`)).status
  const encode = (value: unknown): string =>
    Buffer.from(JSON.stringify(value)).toString('base64url')
  expect(await statusOf(encode(parts))).toBe(200)
  for (const forged of [
    ...[null, 1, {}, [], [version + 1, page, digest, values, id]],
    ...[0, -1, 1.5, '1', null, 2 ** 31].map((other) => [version, other, digest, values, id]),
    ...[[], ['a'], [{}, 1, 1], 'abc', null].map((other) => [version, page, digest, other, id]),
    [version, page, digest, values, null],
  ])
    expect({ forged, status: await statusOf(encode(forged)) }).toEqual({ forged, status: 422 })
  for (const text of ['', 'x', 'WzFd', '%F0%9F%98%80']) expect(await statusOf(text)).toBe(422)
  // SQLite compares values of any type. PostgreSQL refuses those that do not fit the column.
  const wanted = inject('database') === 'postgres' ? [422] : [200, 422]
  for (const time of ['x', 1.5, 1e300, true])
    expect(wanted).toContain(await statusOf(encode([version, page, digest, ['t', 1, time], id])))
  for (const other of ['x', ''])
    expect(wanted).toContain(await statusOf(encode([version, page, digest, values, other])))
  for (const title of ['\0', '\ud800', 5, true])
    expect([200, 422]).toContain(
      await statusOf(encode([version, page, digest, [title, null, 1], id])),
    )
})
