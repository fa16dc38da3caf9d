import { describe, expect, test } from 'vitest'
import { sharedApp } from '../helpers.ts'
import { expectMove, expectRead, expectUpdate, pairsOf, statusAndFields } from './checks.ts'
import {
  type Body,
  eventsAbout,
  newApplication,
  newJob,
  newParticipant,
  requestExample,
  UNKNOWN_ID,
  withNulls,
} from './new-records.ts'

const app = sharedApp()

const defaults = { status: 'submitted', answers: {}, screening_outcome: null }
const times = { created_at: expect.any(String), updated_at: expect.any(String) }

describe('createJobApplication', () => {
  test('the example of the contract → 201 with every field, as stored', async () => {
    const client = await app.newClient()
    const job = await newJob(client, requestExample('JobCreateBody'))
    const example = {
      ...requestExample('JobApplicationCreateBody'),
      job_id: job.id,
      participant_id: (await newParticipant(client)).id,
    }
    const answer = await client.post('/job-applications', example)
    expect(answer.status).toBe(201)
    const stored = { id: expect.any(String), ...defaults, ...example, ...times }
    expect(answer.body).toEqual(
      withNulls('JobApplication', { ...stored, screening_outcome: 'meets_all' }),
    )
    await expectRead(client, `/job-applications/${answer.body.id}`, answer)
    expect(await eventsAbout(client, answer.body.id)).toEqual(['job_application.created'])
  })

  const given: { name: string; fields: { answers?: object } }[] = [
    { name: 'only the two IDs', fields: {} },
    { name: 'an empty object of answers', fields: { answers: {} } },
    {
      name: 'answers of every type',
      fields: {
        answers: { string: '', number: -0.5, true: true, false: false, zero: 0, 'ä ö': '日本' },
      },
    },
    {
      name: 'the most answers: 100',
      fields: { answers: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`a${i}`, i])) },
    },
    {
      name: 'the longest answer: 2,000 characters',
      fields: { answers: { long: 'ä'.repeat(2_000) } },
    },
    {
      name: 'answers with names that every JavaScript object has',
      fields: { answers: JSON.parse('{"__proto__":"a","constructor":"b","hasOwnProperty":1}') },
    },
  ]
  test.each(given)('$name → 201, with defaults for the other fields', async ({ fields }) => {
    const client = await app.newClient()
    const [job_id, participant_id] = [(await newJob(client)).id, (await newParticipant(client)).id]
    const answer = await client.post('/job-applications', { job_id, participant_id, ...fields })
    expect(answer).toMatchObject({ status: 201 })
    const stored = { job_id, participant_id, ...defaults, ...fields, ...times }
    expect(answer.body).toEqual(withNulls('JobApplication', { id: expect.any(String), ...stored }))
    expect(Object.entries(answer.body.answers)).toEqual(Object.entries(fields.answers ?? {}))
    await expectRead(client, `/job-applications/${answer.body.id}`, answer)
  })

  const refused: [string, unknown, string?][] = [
    ['job_id', undefined],
    ['job_id', null],
    ['job_id', UNKNOWN_ID],
    ['participant_id', undefined],
    ['participant_id', 'ada'],
    ['participant_id', UNKNOWN_ID],
    ['status', 'accepted'],
    ['screening_outcome', 'meets_all'],
    ['answers', null],
    ['answers', ['yes']],
    ['answers', { french: null }, 'answers.french'],
    ['answers', { french: ['yes'] }, 'answers.french'],
    ['answers', { french: 'x'.repeat(2_001) }, 'answers.french'],
    ['answers', Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`a${i}`, i])), 'answers'],
  ]
  test.each(refused)('%s: %j → 422 on the field', async (name, value, field = name) => {
    const client = await app.newClient()
    const ids = {
      job_id: (await newJob(client)).id,
      participant_id: (await newParticipant(client)).id,
    }
    expect(
      statusAndFields(await client.post('/job-applications', { ...ids, [name]: value })),
    ).toEqual([422, [field]])
    expect((await client.get('/job-applications')).body.meta.total).toBe(0)
  })

  test.each(['draft', 'closed'])(
    'for a job that is %s → 422 on job_id with its status',
    async (status) => {
      const client = await app.newClient()
      const job = await newJob(client, { status: 'draft' })
      await client.patch(`/jobs/${job.id}`, { status })
      const answer = await client.post('/job-applications', {
        job_id: job.id,
        participant_id: (await newParticipant(client)).id,
      })
      expect(statusAndFields(answer)).toEqual([422, ['job_id']])
      expect(answer.body.errors.job_id[0]).toContain(status)
    },
  )

  test('for a job that was closed and opened again → 201', async () => {
    const client = await app.newClient()
    const job = await newJob(client)
    for (const status of ['closed', 'open']) await client.patch(`/jobs/${job.id}`, { status })
    await newApplication(client, { job_id: job.id })
  })

  test('a second one for the same job and participant → 422, unless the first was deleted', async () => {
    const client = await app.newClient()
    const first = await newApplication(client)
    const { job_id, participant_id } = first
    const again = () => client.post('/job-applications', { job_id, participant_id })
    expect(statusAndFields(await again())).toEqual([422, ['participant_id']])
    await client.patch(`/job-applications/${first.id}`, { status: 'withdrawn' })
    expect(statusAndFields(await again())).toEqual([422, ['participant_id']])
    await newApplication(client, { job_id })
    await newApplication(client, { participant_id })
    await client.delete(`/job-applications/${first.id}`)
    expect((await again()).status).toBe(201)
  })

  test('concurrent requests for one job and participant → exactly one 201', async () => {
    const client = await app.newClient()
    const [job_id, participant_id] = [(await newJob(client)).id, (await newParticipant(client)).id]
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => client.post('/job-applications', { job_id, participant_id })),
    )
    expect(answers.map(statusAndFields).sort()).toEqual([
      [201, []],
      ...Array(4).fill([422, ['participant_id']]),
    ])
    expect((await client.get('/job-applications')).body.meta.total).toBe(1)
  })

  test('during the closing of the job → 201 or 422 on job_id', async () => {
    const client = await app.newClient()
    const { id: participant_id } = await newParticipant(client)
    const rounds = Array.from({ length: 6 }, async () => {
      const { id: job_id } = await newJob(client)
      const [created, closed] = await Promise.all([
        client.post('/job-applications', { job_id, participant_id }),
        client.patch(`/jobs/${job_id}`, { status: 'closed' }),
      ])
      expect(closed.status).toBe(200)
      if (created.status !== 201) expect(statusAndFields(created)).toEqual([422, ['job_id']])
    })
    await Promise.all(rounds)
  })
})

describe('updateJobApplication', () => {
  const changes: { given: object; events: string[] }[] = [
    {
      given: requestExample('JobApplicationUpdateBody'),
      events: ['job_application.updated', 'job_application.status_changed'],
    },
    { given: { answers: { french: false } }, events: ['job_application.updated'] },
    { given: { answers: {} }, events: ['job_application.updated'] },
    {
      given: { status: 'withdrawn', answers: { other: 1 } },
      events: ['job_application.updated', 'job_application.status_changed'],
    },
  ]
  test.each(changes)(
    '$given → 200 and stored, the other fields unchanged',
    async ({ given, events }) => {
      const client = await app.newClient()
      const { id } = await newApplication(client, { answers: { french: true } })
      await expectUpdate(client, `/job-applications/${id}`, given)
      expect(await eventsAbout(client, id)).toEqual(['job_application.created', ...events])
    },
  )

  test('answers → replaced as a whole; the same in another order → no change', async () => {
    const client = await app.newClient()
    const before = await newApplication(client, { answers: { a: 1, b: 2 } })
    const path = `/job-applications/${before.id}`
    expect((await client.patch(path, { answers: { b: 2, a: 1 } })).body).toEqual(before)
    expect((await expectUpdate(client, path, { answers: { b: 2 } })).answers).toEqual({ b: 2 })
  })

  test.each([
    ['status', null],
    ['status', 'hired'],
    ['answers', null],
    ['job_id', UNKNOWN_ID],
    ['participant_id', UNKNOWN_ID],
    ['screening_outcome', null],
  ])('%s: %j → 422 on the field, and no change', async (field, value) => {
    const client = await app.newClient()
    const before = await newApplication(client)
    expect(
      statusAndFields(await client.patch(`/job-applications/${before.id}`, { [field]: value })),
    ).toEqual([422, [field]])
    expect((await client.get(`/job-applications/${before.id}`)).body).toEqual(before)
  })
})

describe('updateJobApplication: moves', () => {
  const MOVES = {
    submitted: ['shortlisted', 'rejected', 'withdrawn'],
    shortlisted: ['accepted', 'rejected', 'withdrawn'],
    accepted: [],
    rejected: [],
    withdrawn: [],
  }
  /** The moves from `submitted` to each status. */
  const movesTo: Record<string, string[]> = {
    submitted: [],
    shortlisted: ['shortlisted'],
    accepted: ['shortlisted', 'accepted'],
    rejected: ['rejected'],
    withdrawn: ['withdrawn'],
  }
  test.each(pairsOf(MOVES))(
    '$from → $to is possible: $isPossible',
    async ({ from, to, isPossible }) => {
      const client = await app.newClient()
      const application: Body = await newApplication(client)
      const path = `/job-applications/${application.id}`
      for (const status of movesTo[from] ?? []) await client.patch(path, { status })
      await expectMove(client, path, { from, to, isPossible })
      const moves = (movesTo[from]?.length ?? 0) + (isPossible && from !== to ? 1 : 0)
      const types = await eventsAbout(client, application.id)
      expect(types.filter((type) => type === 'job_application.status_changed')).toHaveLength(moves)
    },
  )

  test('a job that is no longer open → still possible', async () => {
    const client = await app.newClient()
    const { id, job_id } = await newApplication(client)
    await client.patch(`/jobs/${job_id}`, { status: 'closed' })
    await expectMove(client, `/job-applications/${id}`, {
      from: 'submitted',
      to: 'shortlisted',
      isPossible: true,
    })
  })
})

describe('deleteJobApplication', () => {
  test('in any status → 204, and its job and participant stay', async () => {
    const client = await app.newClient()
    const { id, job_id, participant_id } = await newApplication(client)
    await client.patch(`/job-applications/${id}`, { status: 'rejected' })
    expect((await client.delete(`/job-applications/${id}`)).status).toBe(204)
    for (const path of [`/jobs/${job_id}`, `/participants/${participant_id}`])
      expect((await client.get(path)).status).toBe(200)
    expect((await eventsAbout(client, id)).at(-1)).toBe('job_application.deleted')
  })
})
