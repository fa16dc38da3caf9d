/** The screening outcome of new job applications, and the operators of the questions. */
import { describe, expect, test } from 'vitest'
import { sharedApp } from '../helpers.ts'
import { expectUpdate } from './checks.ts'
import { errorOf, eventsAbout, newApplication, newJob, newParticipant } from './new-records.ts'

const app = sharedApp()

describe('createJobApplication: screening', () => {
  /** What each question expects, by its key: a value, or an operator with its value. */
  type Expectations = Record<string, unknown>

  interface Case {
    must?: Expectations
    nice?: Expectations
    /** JSON. */
    answers: string
    want: string | null
  }
  const both = { must: { french: true }, nice: { years: 5 } }
  const cases: Case[] = [
    { answers: '{}', want: null },
    { answers: '{"french": true}', want: null },
    { ...both, answers: '{"french": true, "years": 5}', want: 'meets_all' },
    { ...both, answers: '{"french": true, "years": 5.0, "other": "x"}', want: 'meets_all' },
    { ...both, answers: '{"french": true, "years": 4}', want: 'missing_nice_to_have' },
    { ...both, answers: '{"french": true}', want: 'missing_nice_to_have' },
    { ...both, answers: '{"french": false, "years": 5}', want: 'missing_must_have' },
    { ...both, answers: '{"french": false, "years": 4}', want: 'missing_must_have' },
    { ...both, answers: '{"years": 5}', want: 'missing_must_have' },
    { ...both, answers: '{}', want: 'missing_must_have' },
    { must: { a: 1, b: 1 }, answers: '{"a": 1, "b": 2}', want: 'missing_must_have' },
    { nice: { a: 1 }, answers: '{}', want: 'missing_nice_to_have' },
    { nice: { a: 1 }, answers: '{"a": 1}', want: 'meets_all' },
    // Types are not converted.
    { must: { a: 5 }, answers: '{"a": "5"}', want: 'missing_must_have' },
    { must: { a: '5' }, answers: '{"a": 5}', want: 'missing_must_have' },
    { must: { a: true }, answers: '{"a": "true"}', want: 'missing_must_have' },
    { must: { a: 'true' }, answers: '{"a": true}', want: 'missing_must_have' },
    { must: { a: true }, answers: '{"a": 1}', want: 'missing_must_have' },
    { must: { a: 0 }, answers: '{"a": false}', want: 'missing_must_have' },
    // Expected values that are falsy in JavaScript.
    { must: { a: false }, answers: '{"a": false}', want: 'meets_all' },
    { must: { a: false }, answers: '{}', want: 'missing_must_have' },
    { must: { a: '' }, answers: '{"a": ""}', want: 'meets_all' },
    { must: { a: '' }, answers: '{"a": " "}', want: 'missing_must_have' },
    { must: { a: '' }, answers: '{}', want: 'missing_must_have' },
    { must: { a: 0 }, answers: '{"a": -0}', want: 'meets_all' },
    // Equal values in other notations.
    { must: { a: 0.1 }, answers: '{"a": 0.10}', want: 'meets_all' },
    { must: { a: 100 }, answers: '{"a": 1e2}', want: 'meets_all' },
    // Upper and lower case differ, in answers and in keys.
    { must: { a: 'Oui' }, answers: '{"a": "oui"}', want: 'missing_must_have' },
    { must: { a: 1 }, answers: '{"A": 1}', want: 'missing_must_have' },
    // Properties that every JavaScript object inherits.
    { must: { constructor: true }, answers: '{}', want: 'missing_must_have' },
    { must: { toString: 'x' }, answers: '{}', want: 'missing_must_have' },
    { must: { constructor: 'x' }, answers: '{"constructor": "x"}', want: 'meets_all' },
    { must: { ['__proto__']: 'x' }, answers: '{}', want: 'missing_must_have' },
    { must: { ['__proto__']: 'x' }, answers: '{"__proto__": "x"}', want: 'meets_all' },
    { must: { ['__proto__']: 'x' }, answers: '{"__proto__": "y"}', want: 'missing_must_have' },
    // Other operators.
    { must: { a: { at_least: 5 } }, answers: '{"a": 7}', want: 'meets_all' },
    { must: { a: { at_least: 5 } }, answers: '{"a": 4.9}', want: 'missing_must_have' },
    { nice: { a: { at_most: 5 } }, answers: '{"a": 5}', want: 'meets_all' },
    { nice: { a: { at_most: 5 } }, answers: '{"a": 6}', want: 'missing_nice_to_have' },
    { must: { a: { one_of: ['x', 2] } }, answers: '{"a": 2}', want: 'meets_all' },
    { must: { a: { one_of: ['x', 2] } }, answers: '{"a": "2"}', want: 'missing_must_have' },
    { must: { a: { one_of: ['x', 2] } }, answers: '{}', want: 'missing_must_have' },
  ]
  const toQuestion = (requirement: string, key: string, expectation: unknown): object => {
    const question = { key, label: 'A question', requirement }
    if (typeof expectation !== 'object' || expectation === null)
      return { ...question, expected: expectation }
    const [[operator, expected] = []] = Object.entries(expectation)
    return { ...question, operator, expected }
  }
  const toQuestions = (requirement: string, expectations: Expectations): object[] =>
    Object.entries(expectations).map(([key, one]) => toQuestion(requirement, key, one))
  const questionsOf = ({ must = {}, nice = {} }: Pick<Case, 'must' | 'nice'>): object[] => [
    ...toQuestions('must_have', must),
    ...toQuestions('nice_to_have', nice),
  ]
  const withTitles = cases.map((row) => ({
    ...row,
    questions: JSON.stringify({ must: row.must, nice: row.nice }),
  }))
  test.each(withTitles)(
    '$questions answered with $answers → $want',
    async ({ answers, want, must, nice }) => {
      const client = await app.newClient()
      const job = await newJob(client, { screening_questions: questionsOf({ must, nice }) })
      const { id: participant } = await newParticipant(client)
      const answer = await client.post(
        '/job-applications',
        `{"job_id":"${job.id}","participant_id":"${participant}","answers":${answers}}`,
      )
      expect(answer).toMatchObject({ status: 201, body: { screening_outcome: want } })
      const [event] = (await client.get(`/events?filter[resource_id]=${answer.body.id}`)).body.data
      expect(event.data).toEqual({ screening_outcome: want })
    },
  )

  test('without answers → missing_must_have', async () => {
    const client = await app.newClient()
    const job = await newJob(client, { screening_questions: questionsOf(both) })
    expect((await newApplication(client, { job_id: job.id })).screening_outcome).toBe(
      'missing_must_have',
    )
  })

  test('later changes of answers or questions → the outcome stays', async () => {
    const client = await app.newClient()
    const job = await newJob(client, { screening_questions: questionsOf(both) })
    const application = await newApplication(client, { job_id: job.id })
    const path = `/job-applications/${application.id}`
    await expectUpdate(client, path, { answers: { french: true, years: 5 } })
    await client.patch(`/jobs/${job.id}`, { screening_questions: [] })
    expect((await client.get(path)).body.screening_outcome).toBe('missing_must_have')
    expect((await newApplication(client, { job_id: job.id })).screening_outcome).toBeNull()
  })
})

describe('createJob: operators of screening questions', () => {
  const question = (given: object = {}): object => ({
    key: 'years',
    label: 'Years?',
    requirement: 'must_have',
    expected: 5,
    ...given,
  })

  const accepted: object[] = [
    { operator: 'equals', expected: 'x' },
    { operator: 'equals', expected: false },
    { operator: 'at_least', expected: -0.5 },
    { operator: 'at_most', expected: 0 },
    { operator: 'one_of', expected: ['x', 'x'] },
    { operator: 'one_of', expected: ['', 'two\nlines', 5, false] },
    { operator: 'one_of', expected: Array.from({ length: 100 }, (_, index) => index) },
  ]
  test.each(accepted)('%j → stored unchanged', async (given) => {
    const client = await app.newClient()
    const job = await newJob(client, { screening_questions: [question(given)] })
    expect(job.screening_questions).toEqual([question(given)])
    expect((await client.get(`/jobs/${job.id}`)).body).toEqual(job)
  })

  const ONE_VALUE = 'a string or a number or true or false'
  const NUMBER = 'a number'
  const ARRAY = 'an array'
  const invalid: [given: object, field: string, message: string][] = [
    [{ operator: 'more_than' }, 'operator', 'must be one of equals, at_least, at_most, one_of.'],
    [{ operator: 'equals', expected: ['x'] }, 'expected', ONE_VALUE],
    [{ operator: undefined, expected: ['x'] }, 'expected', ONE_VALUE],
    [{ operator: 'at_least', expected: '5' }, 'expected', NUMBER],
    [{ operator: 'at_least', expected: [5] }, 'expected', NUMBER],
    [{ operator: 'at_most', expected: true }, 'expected', NUMBER],
    [{ operator: 'one_of', expected: 'x' }, 'expected', ARRAY],
    [{ operator: 'one_of', expected: 5 }, 'expected', ARRAY],
    [{ operator: 'one_of', expected: [null] }, 'expected.0', ONE_VALUE],
    [{ operator: 'one_of', expected: [] }, 'expected', 'at least 1'],
    [{ operator: 'one_of', expected: Array.from({ length: 101 }, (_, i) => i) }, 'expected', '100'],
  ]
  test.each(invalid)('%j → 422 on %s: %s', async (given, field, message) => {
    const client = await app.newClient()
    const name = `screening_questions.1.${field}`
    const bad = question({ key: 'second', ...given })
    const answer = await client.post('/jobs', {
      title: 'J',
      screening_questions: [question(), bad],
    })
    expect([answer.status, Object.keys(answer.body.errors)]).toEqual([422, [name]])
    expect(answer.body.errors[name]).toEqual([expect.stringContaining(message)])
  })

  test('two invalid questions → 422 on both', async () => {
    const bad = [
      question({ operator: 'at_least', expected: 'x' }),
      question({ operator: 'one_of' }),
    ]
    expect(
      await errorOf(
        (await app.newClient()).post('/jobs', { title: 'J', screening_questions: bad }),
      ),
    ).toEqual({
      status: 422,
      fields: ['screening_questions.0.expected', 'screening_questions.1.expected'],
    })
  })

  test('a question without an operator → equals', async () => {
    const client = await app.newClient()
    const job = await newJob(client, { screening_questions: [question()] })
    expect(job.screening_questions).toEqual([question({ operator: 'equals' })])
    expect((await client.get(`/jobs/${job.id}`)).body).toEqual(job)
    expect((await client.get('/jobs')).body.data).toEqual([job])
    // The same question again is no change.
    expect(
      (await client.patch(`/jobs/${job.id}`, { screening_questions: [question()] })).body,
    ).toEqual(job)
    expect(await eventsAbout(client, job.id)).toEqual(['job.created'])
    const application = await newApplication(client, { job_id: job.id, answers: { years: 5 } })
    expect(application.screening_outcome).toBe('meets_all')
  })

  test('updateJob: another operator → replaced and validated', async () => {
    const client = await app.newClient()
    const { id } = await newJob(client, { screening_questions: [question()] })
    const patch = (given: object) =>
      client.patch(`/jobs/${id}`, { screening_questions: [question(given)] })
    expect((await patch({ operator: 'at_least' })).body.screening_questions).toEqual([
      question({ operator: 'at_least' }),
    ])
    expect(await errorOf(patch({ operator: 'one_of' }))).toEqual({
      status: 422,
      fields: ['screening_questions.0.expected'],
    })
    expect(await eventsAbout(client, id)).toEqual(['job.created', 'job.updated'])
  })
})
