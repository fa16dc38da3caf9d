/** Unusual text in records: hostile, or with characters that inputs change. */
import { describe, expect, it } from 'vitest'
import {
  expectSuccess,
  newApplication,
  newJob,
  newPayment,
  newTask,
} from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { mainText, submitForm } from './forms.ts'
import { apiPath, newOwner, resourceBySlug } from './record-forms.ts'

const app = sharedApp()

describe('unusual text', () => {
  const HOSTILE =
    '"><script>alert(1)</script>\'<img src=x onerror=alert(1)>&amp;{{7*7}}</textarea></option>'

  it('with markup is escaped on every page, and stays unchanged when a form is submitted', async () => {
    const { client, visits } = await newOwner(app)
    const person = await expectSuccess(
      client.post('/participants', {
        full_name: HOSTILE,
        phone: HOSTILE.slice(0, 50),
        tags: [HOSTILE.slice(0, 50)],
        external_id: HOSTILE,
      }),
    )
    const question = { key: 'q', label: HOSTILE, requirement: 'must_have', expected: HOSTILE }
    const job = await newJob(client, {
      title: HOSTILE,
      description: HOSTILE,
      screening_questions: [question],
    })
    const answers = { q: HOSTILE, [HOSTILE]: HOSTILE, ['__proto__']: 'x', constructor: 'x' }
    const application = await newApplication(client, {
      job_id: job.id,
      participant_id: person.id,
      answers,
    })
    const task = await newTask(client, {
      title: HOSTILE,
      description: HOSTILE,
      participant_id: person.id,
    })
    const payment = await newPayment(client, {
      participant_id: person.id,
      task_id: task.id,
      note: HOSTILE,
    })
    const exported = await expectSuccess(
      client.post('/exports', { resource: 'tasks', format: 'csv', filters: {} }),
    )
    const editable = {
      participants: person,
      jobs: job,
      'job-applications': application,
      tasks: task,
      payments: payment,
    }
    const records = { ...editable, exports: exported }
    const text = encodeURIComponent(HOSTILE)
    const paths = [
      ...Object.entries(records).flatMap(([slug, { id }]) => [
        `/${slug}`,
        `/${slug}/${id}`,
        `/${slug}/${id}/delete`,
        `/${slug}?filter[${text}]=${text}`,
        `/${slug}?filter[search]=${text}`,
        `/${slug}?sort=${text}`,
        `/${slug}/new?full_name=${text}&title=${text}&participant_id=${text}&status=${text}&resource=${text}&job_id=${job.id}`,
      ]),
      ...Object.entries(editable).map(([slug, { id }]) => `/${slug}/${id}/edit`),
    ]
    for (const path of paths) {
      const page = await visits.get(`/records${path}`)
      expect([200, 422], path).toContain(page.status)
      expect(page.text, path).not.toMatch(/<script>alert|<img src=x/)
    }
    for (const [slug, { id }] of Object.entries(editable)) {
      const before = (await client.get(`${apiPath(resourceBySlug(slug))}/${id}`)).text
      expect(await submitForm(visits, `/records/${slug}/${id}/edit`, {})).toMatchObject({
        status: 303,
      })
      expect((await client.get(`${apiPath(resourceBySlug(slug))}/${id}`)).text).toBe(before)
    }
    const found = await submitForm(visits, '/records/tasks/new', {
      participant_id: HOSTILE.slice(0, 40),
      'ask:find': 'participant_id',
    })
    expect([found.status, found.text.includes('<script>alert')]).toEqual([200, false])
    expect(mainText(found.text)).toContain(HOSTILE)
  })

  const oneOf = (key: string, expected: unknown[]): object => ({
    key,
    label: 'L',
    requirement: 'must_have',
    operator: 'one_of',
    expected,
  })

  interface Unchanged {
    slug: string
    /** Values that the inputs of the form cannot express. */
    body: object
    /** Another status, which a second form sets. */
    status: string
  }

  const UNCHANGED: Unchanged[] = [
    {
      slug: 'participants',
      body: {
        full_name: 'two\nlines',
        tags: ['a\nb', ' c '],
        external_id: ' "x",\t1 ',
        phone: '\r1',
      },
      status: 'archived',
    },
    {
      slug: 'tasks',
      body: { title: ' T ', description: '\r\n\n\rlast\n', due_at: '2027-03-02T09:30:01.234Z' },
      status: 'cancelled',
    },
    {
      slug: 'jobs',
      body: {
        title: 'J',
        description: '',
        screening_questions: [
          { key: '__proto__', label: 'two\nlines', requirement: 'must_have', expected: '' },
        ],
      },
      status: 'open',
    },
    {
      slug: 'jobs',
      body: {
        title: 'J',
        screening_questions: [
          { key: 'a.b', label: 'L', requirement: 'nice_to_have', expected: -0.5 },
          { key: 'a', label: 'L', requirement: 'must_have', expected: false },
        ],
      },
      status: 'open',
    },
    {
      slug: 'jobs',
      body: {
        title: 'J',
        screening_questions: [
          oneOf('texts', ['a', '5', ' b ']),
          oneOf('numbers', [5, -0.5, 1e21]),
          oneOf('mixed', ['5', 5, true]),
          oneOf('lines', ['two\nlines', '']),
          { ...oneOf('least', []), operator: 'at_least', expected: 1e-7 },
        ],
      },
      status: 'open',
    },
  ]
  it.each(UNCHANGED)(
    '$slug $body: a form that changes nothing or only the status keeps the body',
    async ({ slug, body, status }) => {
      const { client, visits } = await newOwner(app)
      const path = apiPath(resourceBySlug(slug))
      const record = await expectSuccess(client.post(path, body))
      const edit = `/records/${slug}/${record.id}/edit`
      expect(await submitForm(visits, edit, {})).toMatchObject({ status: 303 })
      expect((await client.get(`${path}/${record.id}`)).body).toEqual(record)
      expect(await submitForm(visits, edit, { status })).toMatchObject({ status: 303 })
      expect((await client.get(`${path}/${record.id}`)).body).toEqual({
        ...record,
        status,
        updated_at: expect.any(String),
      })
    },
  )

  it('other answers stay when one answer changes, even empty, unknown and ill-typed ones', async () => {
    const { client, visits } = await newOwner(app)
    const screening_questions = ['french', 'years', 'city'].map((key, index) => ({
      key,
      label: key,
      requirement: 'must_have',
      expected: [true, 5, 'x'][index],
    }))
    const job = await newJob(client, { screening_questions })
    const answers = {
      french: 'a little',
      years: '',
      city: '',
      more: 1.5,
      'dotted.key': true,
      'a:kind': 'x',
    }
    const { id } = await newApplication(client, { job_id: job.id, answers })
    expect(
      await submitForm(visits, `/records/job-applications/${id}/edit`, { 'answers.more': '2' }),
    ).toMatchObject({ status: 303 })
    expect((await client.get(`/job-applications/${id}`)).body.answers).toEqual({
      ...answers,
      more: 2,
    })
  })
})
