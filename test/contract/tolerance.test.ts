/** Other notations of values that the service accepts, and similar ones that it refuses. */
import { beforeAll, describe, expect, test } from 'vitest'
import { newApplication, newTask, UNKNOWN_ID } from '../handlers/new-records.ts'
import { type Client, operationIds, operationOf, pathOf, sharedApp } from '../helpers.ts'
import { createOneOfEach, fillPath, newBody, slugOf } from '../resources.ts'

let client: Client

const app = sharedApp()
beforeAll(async () => {
  client = await app.newClient()
  for (const status of ['active', 'inactive', 'archived'])
    for (const full_name of ['Grace', 'Ada'])
      await client.post('/participants', { full_name, status })
})

describe('a parameter with several values', () => {
  const find = async (query: string): Promise<string[]> => {
    const { status, body } = await client.get(`/participants?${query}`)
    expect([query, status, body.errors]).toEqual([query, 200, undefined])
    return body.data.map(
      ({ full_name, status }: Record<string, string>) => `${full_name} ${status}`,
    )
  }

  test.each([
    'filter[status]=active,archived',
    'filter[status]=active, archived',
    'filter[status]=%20active%20,+archived+',
    'filter[status]=active&filter[status]=archived',
    'filter[status][]=active&filter[status][]=archived',
    'filter%5Bstatus%5D%5B%5D=active&filter%5Bstatus%5D=archived',
  ])('%s → both options', async (query) => {
    const preferred = await find('filter[status]=active,archived')
    expect(preferred).toEqual(['Grace active', 'Ada active', 'Grace archived', 'Ada archived'])
    expect(await find(query)).toEqual(preferred)
  })

  test.each([
    ['filter[external_id]=a%2C%20b,c', ['a, b', 'c']],
    ['filter[external_id]=a%2C+b&filter[external_id][]=c', ['a, b', 'c']],
    ['filter[external_id]=a,b', ['a']],
    ['filter[external_id]=%20a', []],
  ])('%s → the external IDs %j: %2C is part of a value, and spaces count', async (query, ids) => {
    const owner = await app.newClient()
    for (const external_id of ['a', 'a, b', 'c']) await newTask(owner, { external_id })
    const { body } = await owner.get(`/tasks?${query}`)
    const found = body.data.map((task: { external_id: string }) => task.external_id)
    expect(found).toEqual(ids)
  })

  test.each([
    'sort=full_name,-created_at',
    'sort=full_name, -created_at',
    'sort=full_name&sort=-created_at',
    'sort[]=full_name&sort[]=-created_at',
  ])('%s → the first decides, then the second', async (query) => {
    expect(await find(`${query}&filter[status]=active,inactive`)).toEqual([
      'Ada inactive',
      'Ada active',
      'Grace inactive',
      'Grace active',
    ])
  })

  test.each([
    ['filter[status]=active&filter[status]=bogus', 'filter[status]', 'must be one of'],
    ['filter[status][]=bogus', 'filter[status][]', 'must be one of'],
    ['filter[status]=active&filter[status]=active', 'filter[status]', 'the same value twice'],
    ['filter[status]=active,', 'filter[status]', 'must be one of'],
    ['sort[]=shoe_size', 'sort[]', 'must be one of'],
    ['filter[email]=a&filter[email]=b', 'filter[email]', 'must appear only once'],
    ['filter[email][]=a', 'filter[email][]', 'is not a recognised field'],
    ['page[size]=1&page[size]=2', 'page[size]', 'must appear only once'],
    ['filter[status][0]=active', 'filter[status][0]', 'is not a recognised field'],
    ['filter[email]=a+b@example.com', 'filter[email]', 'write + as %2B'],
    ['filter[created_after]=2026-03-02T09:30:00+02:00', 'filter[created_after]', 'write + as %2B'],
  ])('%s → 422 on %s', async (query, field, message) => {
    const { status, body } = await client.get(`/participants?${query}`)
    expect([status, Object.keys(body.errors)]).toEqual([422, [field]])
    expect(body.errors[field].join()).toContain(message)
  })

  test('filter[email] with %2B → the participant', async () => {
    const { body } = await client.post('/participants', {
      full_name: 'B',
      email: 'a+b@example.com',
    })
    const found = await client.get('/participants?filter[email]=a%2Bb@example.com')
    expect(found.body.data).toEqual([body])
  })

  const reads = operationIds.filter((id) => operationOf(id).method === 'get')
  const lists = reads.flatMap((id) => {
    const parameters = Object.entries(operationOf(id).query)
    return parameters.filter(([, { type }]) => type === 'list').map(([name]) => ({ id, name }))
  })
  const ids = [UNKNOWN_ID, UNKNOWN_ID.replace(/.$/, '2')]
  test.each(lists)('$id: $name may be repeated and bracketed', async ({ id, name }) => {
    // The parameters are checked before the record, so an unknown one is enough.
    const path = pathOf(id).replace(/\{.*\}/, UNKNOWN_ID)
    const { errors } = (await client.get(`${path}?${name}=bogus`)).body
    const choices = / one of (.+)\.$/.exec(errors?.[name]?.[0])?.[1]?.split(', ')
    const { sorts, filters } = operationOf(id)
    const filter = /^filter\[(.+)\]$/.exec(name)?.[1] ?? ''
    const options = name === 'sort' ? sorts : (filters[filter]?.options ?? choices ?? ids)
    expect(options).not.toEqual([])
    for (const spelling of [name, `${name}[]`]) {
      const query = options.slice(0, 2).map((option) => `${spelling}=${option}`)
      const { status } = await client.get(`${path}?${query.join('&')}`)
      expect(status).toBe(path === pathOf(id) ? 200 : 404)
    }
  })

  test('an export accepts spaces after the commas of a filter', async () => {
    const filters = { status: 'active, archived' }
    const body = { resource: 'participants', format: 'csv', filters }
    expect(await client.post('/exports', body)).toMatchObject({ status: 201, body: { filters } })
  })
})

describe('application/merge-patch+json', () => {
  const MERGE_PATCH = { 'Content-Type': 'application/merge-patch+json; charset=utf-8' }
  const updates = operationIds.filter((id) => operationOf(id).method === 'patch')

  test.each(updates)('%s: accepted, with the same errors as plain JSON', async (id) => {
    const path = fillPath(pathOf(id), await createOneOfEach(client))
    const merged = await client.patch(path, { status: 'bogus', unknown: 1 }, MERGE_PATCH)
    const plain = await client.patch(path, { status: 'bogus', unknown: 1 })
    expect([merged.status, merged.body]).toEqual([422, plain.body])
    const { status } = (await client.get(path)).body
    expect((await client.patch(path, { status }, MERGE_PATCH)).status).toBe(200)
  })

  test('null clears a field that can be null, and is refused for others', async () => {
    const { body } = await client.post('/participants', { full_name: 'Ada', phone: '1' })
    const patch = (fields: object) => client.patch(`/participants/${body.id}`, fields, MERGE_PATCH)
    expect((await patch({ phone: null })).body).toMatchObject({ full_name: 'Ada', phone: null })
    expect((await patch({ full_name: null })).body.errors).toEqual({
      full_name: ['must be a string.'],
    })
    expect((await patch([])).body.errors).toEqual({ '': ['must be an object.'] })
  })

  test('answers are merged; as plain JSON they are replaced', async () => {
    const answers = { french: true, years: 5 }
    const application = await newApplication(client, { answers })
    const patch = async (body: object, headers?: Record<string, string>) =>
      (await client.patch(`/job-applications/${application.id}`, body, headers)).body
    expect(await patch({ answers: { years: 6, city: 'Lyon' } }, MERGE_PATCH)).toMatchObject({
      answers: { french: true, years: 6, city: 'Lyon' },
    })
    expect((await patch({ answers: { french: null } }, MERGE_PATCH)).answers).toEqual({
      years: 6,
      city: 'Lyon',
    })
    expect((await patch({ answers: {} }, MERGE_PATCH)).answers).toEqual({ years: 6, city: 'Lyon' })
    expect((await patch({ answers: { french: true } })).answers).toEqual({ french: true })
    expect((await patch({ answers: { french: null } })).errors).toBeDefined()
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`a${i}`, i]))
    expect((await patch({ answers: many }, MERGE_PATCH)).errors).toEqual({
      answers: ['must have at most 100 fields.'],
    })
  })

  test('415 for a POST; the header Accept lists the types that the operation accepts', async () => {
    const { body } = await client.post('/participants', { full_name: 'Ada' })
    const post = await client.post('/participants', { full_name: 'Ada' }, MERGE_PATCH)
    expect([post.status, post.headers.get('accept')]).toEqual([415, 'application/json'])
    const text = { 'Content-Type': 'text/plain' }
    const patch = await client.patch(`/participants/${body.id}`, '{}', text)
    expect([patch.status, patch.headers.get('accept')]).toEqual([
      415,
      'application/json, application/merge-patch+json',
    ])
  })
})

describe('text of white space only', () => {
  const BLANKS = [' ', '\t\n', '\u00a0\u2003\u3000']
  const question = { key: 'a', label: 'A', requirement: 'must_have', expected: true }
  const questions = (label: string) => ({ screening_questions: [{ ...question, label }] })
  const cases: [type: string, field: string, fields: (text: string) => object][] = [
    ['participant', 'full_name', (full_name) => ({ full_name })],
    ['participant', 'phone', (phone) => ({ phone })],
    ['participant', 'tags.0', (tag) => ({ tags: [tag] })],
    ['participant', 'external_id', (external_id) => ({ external_id })],
    ['task', 'title', (title) => ({ title })],
    ['task', 'description', (description) => ({ description })],
    ['job', 'title', (title) => ({ title })],
    ['job', 'description', (description) => ({ description })],
    ['job', 'screening_questions.0.label', questions],
    ['payment', 'note', (note) => ({ note })],
  ]
  const MAY_BE_EMPTY = ['description', 'note']

  test.each(cases)('%s: %s → 422 at creation and update', async (type, field, fields) => {
    const slug = slugOf(type)
    const valid = await newBody(client, type)
    const { id } = (await client.post(`/${slug}`, valid)).body
    const before = (await client.get(`/${slug}/${id}`)).text
    for (const text of BLANKS)
      for (const answer of [
        await client.post(`/${slug}`, { ...valid, ...fields(text) }),
        await client.patch(`/${slug}/${id}`, fields(text)),
      ])
        expect([answer.status, answer.body.errors]).toEqual([
          422,
          { [field]: ['must not be only white space.'] },
        ])
    expect((await client.get(`/${slug}/${id}`)).text).toBe(before)

    const empty = await client.patch(`/${slug}/${id}`, fields(''))
    if (MAY_BE_EMPTY.includes(field)) expect(empty.status).toBe(200)
    else expect(empty.body.errors).toEqual({ [field]: ['must not be empty.'] })
    expect((await client.patch(`/${slug}/${id}`, fields(' x\n'))).status).toBe(200)
  })

  test('accepted in answers, which are compared and not shown', async () => {
    expect(await newApplication(client, { answers: { a: ' ' } })).toMatchObject({
      answers: { a: ' ' },
    })
  })
})
