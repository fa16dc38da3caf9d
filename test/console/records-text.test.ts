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

describe('text', () => {
  const HOSTILE =
    '"><script>alert(1)</script>\'<img src=x onerror=alert(1)>&amp;{{7*7}}</textarea></option>'

  it('is escaped on every page, and returns unchanged from the forms', async () => {
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
    const answers = { q: HOSTILE, [HOSTILE]: HOSTILE, __proto__: undefined, constructor: 'x' }
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
    const made_ = await expectSuccess(
      client.post('/exports', { resource: 'tasks', format: 'csv', filters: {} }),
    )
    const all = {
      participants: person,
      jobs: job,
      'job-applications': application,
      tasks: task,
      payments: payment,
      exports: made_,
    }
    const name = encodeURIComponent(HOSTILE)
    const paths = [
      ...Object.entries(all).flatMap(([slug, { id }]) => [
        ...[
          `/${slug}`,
          `/${slug}/${id}`,
          `/${slug}?filter[${name}]=${name}`,
          `/${slug}?filter[search]=${name}`,
          `/${slug}?sort=${name}`,
        ],
        ...(slug === 'exports' ? [] : [`/${slug}/${id}/edit`, `/${slug}/${id}/delete`]),
      ]),
      ...Object.keys(all).map(
        (slug) =>
          `/${slug}/new?full_name=${name}&title=${name}&participant_id=${name}&status=${name}&resource=${name}&job_id=${job.id}`,
      ),
    ]
    for (const path of paths) {
      const { text, status } = await visits.get(`/records${path}`)
      expect([path, [200, 422].includes(status)]).toEqual([path, true])
      expect([path, text.match(/<script>alert|<img src=x|\{\{49/g)]).toEqual([path, null])
    }
    for (const [slug, { id }] of Object.entries(all)) {
      if (slug === 'exports') continue
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

  const listQuestion = (key: string, expected: unknown[]): object => ({
    ...{ key, label: 'L', requirement: 'must_have', operator: 'one_of', expected },
  })

  /** Submitting a form keeps values that its inputs cannot express. */
  const KEPT: [slug: string, body: object][] = [
    [
      'participants',
      { full_name: 'two\nlines', tags: ['a\nb', ' c '], external_id: ' "x",\t1 ', phone: '\r1' },
    ],
    ['tasks', { title: ' T ', description: '\r\n\n\rlast\n', due_at: '2027-03-02T09:30:01.234Z' }],
    [
      'jobs',
      {
        title: 'J',
        description: '',
        screening_questions: [
          { key: '__proto__', label: 'two\nlines', requirement: 'must_have', expected: '' },
        ],
      },
    ],
    [
      'jobs',
      {
        title: 'J',
        screening_questions: [
          { key: 'a.b', label: 'L', requirement: 'nice_to_have', expected: -0.5 },
          { key: 'a', label: 'L', requirement: 'must_have', expected: false },
        ],
      },
    ],
    [
      'jobs',
      {
        title: 'J',
        screening_questions: [
          listQuestion('texts', ['a', '5', ' b ']),
          listQuestion('numbers', [5, -0.5, 1e21]),
          listQuestion('mixed', ['5', 5, true]),
          listQuestion('lines', ['two\nlines', '']),
          { ...listQuestion('least', []), operator: 'at_least', expected: 1e-7 },
        ],
      },
    ],
  ]
  it.each(KEPT)(
    '%s %j: unchanged by a form that saves nothing or another field',
    async (slug, body) => {
      const { client, visits } = await newOwner(app)
      const path = apiPath(resourceBySlug(slug))
      const record = await expectSuccess(client.post(path, body))
      const edit = `/records/${slug}/${record.id}/edit`
      expect(await submitForm(visits, edit, {})).toMatchObject({ status: 303 })
      expect((await client.get(`${path}/${record.id}`)).body).toEqual(record)
      const status = slug === 'participants' ? 'archived' : slug === 'tasks' ? 'cancelled' : 'open'
      expect(await submitForm(visits, edit, { status })).toMatchObject({ status: 303 })
      expect((await client.get(`${path}/${record.id}`)).body).toEqual({
        ...record,
        status,
        updated_at: expect.any(String),
      })
    },
  )

  it('keeps non-text, empty and unknown answers when another answer changes', async () => {
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
