import { beforeAll, describe, expect, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { expectMove, pairsOf } from './checks.ts'
import {
  errorOf,
  eventsAbout,
  expectSuccess,
  newApplication,
  newJob,
  requestExample,
  withNulls,
} from './new-records.ts'

const NOON = '2026-03-02T12:00:00.000Z'

let client: Client

const app = sharedApp({ now: () => new Date(NOON) })
beforeAll(async () => {
  client = await app.newClient()
})

const question = (given: object = {}): object => ({
  key: 'french',
  label: 'French?',
  requirement: 'must_have',
  expected: true,
  ...given,
})

describe('createJob', () => {
  test('the example of the contract → 201 with its fields in order, and job.created', async () => {
    const example = requestExample('JobCreateBody')
    const answer = await client.post('/jobs', example)
    const { id } = answer.body
    expect([answer.status, answer.headers.get('location')]).toEqual([201, `/public/v1/jobs/${id}`])
    const { title, description, status, screening_questions } = example
    const stored = {
      id,
      title,
      description,
      status,
      screening_questions,
      created_at: NOON,
      updated_at: NOON,
    }
    expect(answer.text).toBe(JSON.stringify(withNulls('Job', stored)))
    expect(await eventsAbout(client, id)).toEqual(['job.created'])
  })

  test('only a title → a draft without questions', async () => {
    const { status, body } = await client.post('/jobs', { title: 'J' })
    expect([status, body]).toMatchObject([
      201,
      { description: '', status: 'draft', screening_questions: [] },
    ])
  })

  const questions = (...given: object[]): object => ({ screening_questions: given.map(question) })
  const invalid: { given: object; field: string }[] = [
    { given: { title: undefined }, field: 'title' },
    { given: { title: '' }, field: 'title' },
    { given: { status: 'closed' }, field: 'status' },
    { given: { screening_questions: null }, field: 'screening_questions' },
    {
      given: { screening_questions: [question({ label: undefined })] },
      field: 'screening_questions.0.label',
    },
    { given: questions({ key: 'not a key' }), field: 'screening_questions.0.key' },
    { given: questions({ requirement: 'maybe' }), field: 'screening_questions.0.requirement' },
    { given: questions({}, { key: 'b', expected: null }), field: 'screening_questions.1.expected' },
    { given: questions({ expected: ['yes'] }), field: 'screening_questions.0.expected' },
    { given: questions({ weight: 2 }), field: 'screening_questions.0.weight' },
    { given: questions({}, { key: 'b' }, {}), field: 'screening_questions.2.key' },
    {
      given: questions(...Array.from({ length: 51 }, (_, i) => ({ key: `q${i}` }))),
      field: 'screening_questions',
    },
  ]
  test.each(invalid)('$given → 422 on $field', async ({ given, field }) =>
    expect(await errorOf(client.post('/jobs', { title: 'J', ...given }))).toEqual({
      status: 422,
      fields: [field],
    }),
  )

  test('50 questions, and keys that differ only in case → 201', async () => {
    const many = questions(
      ...Array.from({ length: 48 }, (_, i) => ({ key: `q${i}` })),
      { key: 'French' },
      { key: 'french' },
    )
    expect((await newJob(client, many)).screening_questions).toHaveLength(50)
  })
})

describe('updateJob', () => {
  test('the example of the contract → closed, and job.updated', async () => {
    const job = await newJob(client)
    const { status, body } = await client.patch(`/jobs/${job.id}`, requestExample('JobUpdateBody'))
    expect([status, body]).toEqual([200, { ...job, status: 'closed', updated_at: body.updated_at }])
    expect(await eventsAbout(client, job.id)).toEqual(['job.created', 'job.updated'])
  })

  const MOVES = { draft: ['open', 'closed'], open: ['closed'], closed: ['open'] }
  test.each(pairsOf(MOVES))(
    '$from → $to is possible: $isPossible',
    async ({ from, to, isPossible }) => {
      const { id } = await newJob(client, { status: from === 'draft' ? 'draft' : 'open' })
      if (from === 'closed') await expectSuccess(client.patch(`/jobs/${id}`, { status: 'closed' }))
      await expectMove(client, `/jobs/${id}`, { from, to, isPossible })
    },
  )

  test.each([
    ['open', 'draft', 'cannot become draft: it is open, which can only become closed.'],
    ['closed', 'draft', 'cannot become draft: it is closed, which can only become open.'],
  ])('%s → %s: the error says what is possible', async (from, to, message) => {
    const { id } = await newJob(client)
    await expectSuccess(client.patch(`/jobs/${id}`, { status: from }))
    const { body } = await client.patch(`/jobs/${id}`, { status: to })
    expect(body.errors).toEqual({ status: [message] })
  })

  test('questions → replaced as a whole; the same again → no change; a repeated key → 422', async () => {
    const job = await newJob(client, { screening_questions: [question(), question({ key: 'b' })] })
    const patch = (screening_questions: object[]) =>
      client.patch(`/jobs/${job.id}`, { screening_questions })
    expect((await patch(job.screening_questions)).body).toEqual(job)
    // The order of a question's fields does not matter; the order of the questions does.
    const [first, second] = job.screening_questions
    expect(
      (await patch([Object.fromEntries(Object.entries(first).reverse()), second])).body,
    ).toEqual(job)
    expect((await patch([second, first])).body.screening_questions).toEqual([second, first])
    expect(await errorOf(patch([first, first]))).toEqual({
      status: 422,
      fields: ['screening_questions.1.key'],
    })
    expect((await patch([])).body.screening_questions).toEqual([])
    expect(await eventsAbout(client, job.id)).toEqual(['job.created', 'job.updated', 'job.updated'])
  })

  test('an expected -0 for 0 → no change', async () => {
    const job = await newJob(client, { screening_questions: [question({ expected: 0 })] })
    const body = JSON.stringify({ screening_questions: [question({ expected: 'zero' })] }).replace(
      '"zero"',
      '-0',
    )
    expect((await client.patch(`/jobs/${job.id}`, body)).body).toEqual(job)
    expect(await eventsAbout(client, job.id)).toEqual(['job.created'])
  })

  test('title and description → found by the new texts only', async () => {
    const { id } = await newJob(client, { title: 'Lighthouse keeper', description: 'At the cape' })
    await expectSuccess(client.patch(`/jobs/${id}`, { title: 'Warden' }))
    const total = async (text: string): Promise<number> =>
      (await client.get(`/jobs?filter[search]=${text}`)).body.meta.total
    expect([await total('lighthouse'), await total('WARDEN'), await total('the%20CAPE')]).toEqual([
      0, 1, 1,
    ])
  })
})

describe('deleteJob', () => {
  test('with applications → 422 with their number; without → 204', async () => {
    const { id } = await newJob(client)
    const application = await newApplication(client, { job_id: id })
    const answer = await client.delete(`/jobs/${id}`)
    expect([answer.status, Object.keys(answer.body.errors)]).toEqual([422, ['job']])
    expect(answer.body.errors.job[0]).toContain('1 job application')
    await client.delete(`/job-applications/${application.id}`)
    expect((await client.delete(`/jobs/${id}`)).status).toBe(204)
    expect(await eventsAbout(client, id)).toEqual(['job.created', 'job.deleted'])
  })
})
