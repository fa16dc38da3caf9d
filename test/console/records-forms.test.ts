/** The forms of records: what is wrong is said where it is, nothing that was typed is lost, and nothing of others is overwritten. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { resources } from '../../generated/resources.ts'
import type { Schema } from '../../scripts/model/schema.ts'
import {
  type Body,
  eventsAbout,
  expectSuccess,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
  UNKNOWN_ID,
} from '../handlers/new-records.ts'
import { type Answer, type Client, startApp, type TestApp } from '../helpers.ts'
import {
  apiPath,
  errorsIn,
  fill,
  filledIn,
  formOf,
  madeBy,
  newOwner,
  type Owner,
  resourceOf,
  textOf,
  type Values,
} from './forms.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app?.[Symbol.asyncDispose]())

/** A record of each kind, and a body that would make another. */
async function newRecords(client: Client): Promise<Record<string, { id: string; body: Body }>> {
  const ada = await newParticipant(client)
  const other = await newParticipant(client, { full_name: 'Grace Hopper' })
  const job = await newJob(client)
  const task = await newTask(client)
  const application = await newApplication(client, { job_id: job.id, participant_id: ada.id })
  const payment = await newPayment(client, { participant_id: ada.id })
  return {
    participants: { id: ada.id, body: { full_name: 'Alan Turing' } },
    tasks: { id: task.id, body: { title: 'Call' } },
    jobs: { id: job.id, body: { title: 'Driver' } },
    'job-applications': { id: application.id, body: { job_id: job.id, participant_id: other.id } },
    payments: {
      id: payment.id,
      body: { participant_id: ada.id, amount_minor: 5, currency: 'EUR' },
    },
    exports: { id: '', body: { resource: 'tasks', format: 'csv' } },
  }
}

interface Wrong {
  field: string
  /** What is typed, and the value that the API is given with it. */
  typed: string
  value: unknown
}

/** For each field of a body, each value that its schema does not take and that can be typed. */
function wrongValues({ properties = {} }: Schema): Wrong[] {
  return Object.entries(properties).flatMap(([field, schema]) =>
    wrongOf(schema).map(([typed, value]) => ({ field, typed, value })),
  )
}

function wrongOf(schema: Schema): [typed: string, value: unknown][] {
  const { type, format, maxLength, minimum, maximum, items, uniqueItems } = schema
  const text = (value: string): [string, unknown] => [value, value]
  if (schema.enum) return [text('none_of_these')]
  if (type === 'integer')
    return [
      text('many'),
      text('1.5'),
      [String((minimum ?? 0) - 1), (minimum ?? 0) - 1],
      [String((maximum ?? 0) + 1), (maximum ?? 0) + 1],
    ]
  if (format) return [text('nonsense'), ...(maxLength ? [text('x'.repeat(maxLength + 1))] : [])]
  if (type === 'string' && maxLength) return [text('é'.repeat(maxLength + 1))]
  if (items?.type === 'string') {
    const long = 'x'.repeat((items.maxLength ?? 0) + 1)
    return [
      [`a\r\n${long}`, ['a', long]],
      ...(uniqueItems ? [['a\r\na', ['a', 'a']] as [string, unknown]] : []),
    ]
  }
  return []
}

/** As a browser names the element with the error. */
const errorId = (field: string): string => field.replace(/\W/g, '-')

const creations = resources.flatMap((resource) =>
  wrongValues(resource.creation ?? {}).map((wrong) => ({ slug: resource.slug, ...wrong })),
)
const changes = resources.flatMap((resource) =>
  wrongValues(resource.change ?? {}).map((wrong) => ({ slug: resource.slug, ...wrong })),
)
const said = ({ typed }: Wrong): string =>
  typed.length > 30 ? `${typed.length} characters` : JSON.stringify(typed)

describe('what the contract does not take', () => {
  let owner: Owner
  let records: Record<string, { id: string; body: Body }>
  beforeAll(async () => {
    owner = await newOwner(app)
    records = await newRecords(owner.client)
  })

  /** What the API says of a body is said of the form that means the same, at the field; and all that was typed is there again. */
  async function expectRefusal(
    to: string,
    field: string,
    typed: Values,
    api: Answer,
  ): Promise<void> {
    const sent = filledIn(formOf((await owner.visits.get(to)).text), typed)
    const answer = await owner.visits.post(to, sent)
    expect([answer.status, api.status]).toEqual([422, 422])
    const said = errorsIn(answer.text)[errorId(field)]
    for (const message of Object.values<string[]>(api.body.errors).flat())
      expect(said).toContain(message)
    expect(filledIn(formOf(answer.text), {})).toMatchObject(sent)
  }

  it.each(creations.map((row) => ({ ...row, says: said(row) })))(
    '$slug: a new one with $field $says → 422 in the words of the API',
    async ({ slug, field, typed, value }) => {
      const path = apiPath(resourceOf(slug))
      const before = (await owner.client.get(path)).body.meta.total
      const body = records[slug]?.body
      const api = await owner.client.post(path, { ...body, [field]: value })
      await expectRefusal(`/records/${slug}/new`, field, { ...asTyped(body), [field]: typed }, api)
      expect((await owner.client.get(path)).body.meta.total).toBe(before)
    },
  )

  it.each(changes.map((row) => ({ ...row, says: said(row) })))(
    '$slug: $field changed to $says → 422 in the words of the API',
    async ({ slug, field, typed, value }) => {
      const own = `${apiPath(resourceOf(slug))}/${records[slug]?.id}`
      const before = (await owner.client.get(own)).text
      const api = await owner.client.patch(own, { [field]: value })
      await expectRefusal(
        `/records/${slug}/${records[slug]?.id}/edit`,
        field,
        { [field]: typed },
        api,
      )
      expect((await owner.client.get(own)).text).toBe(before)
    },
  )

  const required = resources.flatMap(({ slug, creation }) =>
    (creation?.required ?? []).map((field) => ({ slug, field })),
  )
  it.each(required)('$slug: a new one without $field → required', async ({ slug, field }) => {
    const answer = await fill(owner.visits, `/records/${slug}/new`, {
      ...asTyped(records[slug]?.body),
      [field]: '',
    })
    expect(answer.status).toBe(422)
    expect(errorsIn(answer.text)[errorId(field)]).toContain('is required.')
  })

  it('of a question each part by its own, by the number that it has on the page', async () => {
    const group = (index: number, values: Record<string, string>): Values =>
      Object.fromEntries(
        Object.entries(values).map(([name, value]) => [
          `screening_questions.${index}.${name}`,
          value,
        ]),
      )
    const good = { key: 'a', label: 'A?', requirement: 'must_have', expected: 'x' }
    const answer = await fill(owner.visits, '/records/jobs/new', {
      title: 'J',
      ...group(0, { key: '', label: '', requirement: '', expected: '' }),
      ...group(1, good),
      ...group(2, {
        ...good,
        key: 'not a key',
        label: 'x'.repeat(501),
        requirement: 'perhaps',
        'expected:kind': 'number',
        expected: 'five',
      }),
      ...group(3, { ...good, label: '' }),
    })
    // The one that nobody filled in is gone, and those after it moved up.
    expect([answer.status, Object.keys(errorsIn(answer.text))]).toEqual([
      422,
      [
        ...['key', 'label', 'requirement', 'expected'].map(
          (part) => `screening_questions-1-${part}`,
        ),
        'screening_questions-2-label',
      ],
    ])
    expect(errorsIn(answer.text)['screening_questions-1-expected']).toContain('must be a number.')
    const sent = filledIn(formOf(answer.text), {})
    expect(sent).toMatchObject({
      ...group(0, good),
      ...group(1, {
        key: 'not a key',
        requirement: 'perhaps',
        expected: 'five',
        'expected:kind': 'number',
      }),
    })

    const twice = await fill(owner.visits, '/records/jobs/new', {
      title: 'J',
      ...group(0, good),
      ...group(1, good),
    })
    expect(errorsIn(twice.text)).toEqual({
      'screening_questions-1-key': 'Key is the key of another question: a.',
    })
  })

  it('of what depends on the whole account: at its field, too', async () => {
    const { client, visits } = owner
    await newParticipant(client, { email: 'taken@example.com', external_id: 'taken' })
    const taken = await fill(visits, '/records/participants/new', {
      full_name: 'A',
      email: 'TAKEN@example.com',
    })
    expect(errorsIn(taken.text)).toEqual({ email: 'Email is used by another participant.' })
    const unknown = await fill(visits, '/records/tasks/new', {
      title: 'T',
      participant_id: UNKNOWN_ID,
    })
    expect(errorsIn(unknown.text)).toEqual({
      participant_id: 'Participant does not name a participant of your account.',
    })
    const draft = await newJob(client, { status: 'draft' })
    const closed = await fill(visits, '/records/job-applications/new', {
      ...asTyped(records['job-applications']?.body),
      job_id: draft.id,
    })
    expect(errorsIn(closed.text)).toEqual({
      job_id: 'Job names a job that takes no applications: it is draft.',
    })
    const job = await newJob(client)
    const moved = await fill(visits, `/records/jobs/${job.id}/edit`, { status: 'draft' })
    expect(errorsIn(moved.text)).toEqual({
      status: 'Status cannot become draft: it is open, which can only become closed.',
    })
    const filters = await fill(visits, '/records/exports/new?resource=tasks', {
      format: 'csv',
      'filters.participant_id': 'nobody',
      'filters.due_after': 'x',
    })
    expect(Object.keys(errorsIn(filters.text)).sort()).toEqual([
      'filters-due_after',
      'filters-participant_id',
    ])
    expect(filledIn(formOf(filters.text), {})).toMatchObject({
      'filters.participant_id': 'nobody',
      'filters.due_after': 'x',
    })
  })
})

/** A body as somebody types it. */
function asTyped(body: Body): Values {
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, String(value)]))
}

describe('text of every kind', () => {
  const HOSTILE =
    '"><script>alert(1)</script>\'<img src=x onerror=alert(1)>&amp;{{7*7}}</textarea></option>'

  it('is shown as text on every page that it gets to, and comes back from the forms as it was', async () => {
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
      const before = (await client.get(`${apiPath(resourceOf(slug))}/${id}`)).text
      expect(await fill(visits, `/records/${slug}/${id}/edit`, {})).toMatchObject({ status: 303 })
      expect((await client.get(`${apiPath(resourceOf(slug))}/${id}`)).text).toBe(before)
    }
    const found = await fill(visits, '/records/tasks/new', {
      participant_id: HOSTILE.slice(0, 40),
      'ask:find': 'participant_id',
    })
    expect([found.status, found.text.includes('<script>alert')]).toEqual([200, false])
    expect(textOf(found.text)).toContain(HOSTILE)
  })

  /** What a form cannot say in so many words is not lost by sending it. */
  const KEPT: [slug: string, body: object][] = [
    [
      'participants',
      { full_name: 'two\nlines', tags: ['a\nb', ' c '], external_id: ' "x",\t1 ', phone: '\r' },
    ],
    ['tasks', { title: ' ', description: '\r\n\n\rlast\n', due_at: '2027-03-02T09:30:01.234Z' }],
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
  ]
  it.each(KEPT)(
    '%s %j: sent as it came, it stays as it is; with another field changed, only that is',
    async (slug, body) => {
      const { client, visits } = await newOwner(app)
      const path = apiPath(resourceOf(slug))
      const record = await expectSuccess(client.post(path, body))
      const edit = `/records/${slug}/${record.id}/edit`
      expect(await fill(visits, edit, {})).toMatchObject({ status: 303 })
      expect((await client.get(`${path}/${record.id}`)).body).toEqual(record)
      const status = slug === 'participants' ? 'archived' : slug === 'tasks' ? 'cancelled' : 'open'
      expect(await fill(visits, edit, { status })).toMatchObject({ status: 303 })
      expect((await client.get(`${path}/${record.id}`)).body).toEqual({
        ...record,
        status,
        updated_at: expect.any(String),
      })
    },
  )

  it('answers that are no text, are empty, or are to no question stay when another is changed', async () => {
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
      await fill(visits, `/records/job-applications/${id}/edit`, { 'answers.more': '2' }),
    ).toMatchObject({ status: 303 })
    expect((await client.get(`/job-applications/${id}`)).body.answers).toEqual({
      ...answers,
      more: 2,
    })
  })
})

describe('changed by two', () => {
  async function meanwhile(slug: string, record: Body, client: Client, by: object): Promise<void> {
    expect((await client.patch(`${apiPath(resourceOf(slug))}/${record.id}`, by)).status).toBe(200)
  }

  it('the second is told, sees what is stored beside what was typed, and overwrites nothing by accident', async () => {
    const { client, visits } = await newOwner(app)
    const record = await newParticipant(client, {
      email: 'ada@example.com',
      phone: '1',
      tags: ['a'],
    })
    const edit = `/records/participants/${record.id}/edit`
    const form = formOf((await visits.get(edit)).text)
    await meanwhile('participants', record, client, {
      email: 'countess@example.com',
      phone: '2',
      tags: ['b'],
    })
    const told = await visits.post(edit, filledIn(form, { email: 'lovelace@example.com' }))
    expect(told.status).toBe(409)
    expect(textOf(told.text)).toContain('Someone else has updated this record.')
    expect(textOf(told.text)).toContain('Now stored: countess@example.com')
    const stored = (await client.get(`/participants/${record.id}`)).body
    expect(stored).toMatchObject({ email: 'countess@example.com', phone: '2', tags: ['b'] })

    // What was typed is there; what was not touched is as the other has left it.
    const again = formOf(told.text)
    expect(filledIn(again, {})).toMatchObject({
      email: 'lovelace@example.com',
      phone: '2',
      tags: 'b',
      updated_at: stored.updated_at,
    })
    expect(await visits.post(edit, filledIn(again, {}))).toMatchObject({ status: 303 })
    expect((await client.get(`/participants/${record.id}`)).body).toMatchObject({
      email: 'lovelace@example.com',
      phone: '2',
      tags: ['b'],
    })
    expect(await eventsAbout(client, record.id)).toEqual([
      'participant.created',
      'participant.updated',
      'participant.updated',
    ])
  })

  it('of every kind, and also when the form has come back with an error in between', async () => {
    const { client, visits } = await newOwner(app)
    const records = await newRecords(client)
    const theirs: Record<string, [by: object, typed: Values, wrong: Values]> = {
      participants: [{ phone: '5' }, { full_name: 'New' }, { email: 'nonsense' }],
      tasks: [{ description: 'theirs' }, { title: 'New' }, { title: '' }],
      jobs: [{ description: 'theirs' }, { title: 'New' }, { title: '' }],
      'job-applications': [
        { answers: { a: 1 } },
        { status: 'shortlisted' },
        { status: 'nonsense' },
      ],
      payments: [{ note: 'theirs' }, { amount_minor: '7' }, { amount_minor: 'x' }],
    }
    for (const [slug, [by, typed, wrong]] of Object.entries(theirs)) {
      const id = records[slug]?.id
      const edit = `/records/${slug}/${id}/edit`
      const refused = await fill(visits, edit, { ...typed, ...wrong })
      expect([slug, refused.status]).toEqual([slug, 422])
      const before = await eventsAbout(client, id ?? '')
      await meanwhile(slug, { id }, client, by)
      const told = await visits.post(
        edit,
        filledIn(
          formOf(refused.text),
          typed.email === undefined ? { ...typed, ...(wrong.email && { email: '' }) } : typed,
        ),
      )
      expect([slug, told.status]).toEqual([slug, 409])
      expect((await eventsAbout(client, id ?? '')).length).toBe(before.length + 1)
    }
  })

  it('a record that is changed is not deleted unseen; one that is gone is 404', async () => {
    const { client, visits } = await newOwner(app)
    const record = await newParticipant(client)
    const asked = formOf((await visits.get(`/records/participants/${record.id}/delete`)).text)
    await meanwhile('participants', record, client, { phone: '2' })
    const told = await visits.post(asked.to, filledIn(asked, {}))
    expect([
      told.status,
      textOf(told.text).includes('Someone else has updated this record'),
    ]).toEqual([409, true])
    expect((await client.get(`/participants/${record.id}`)).status).toBe(200)
    expect(await visits.post(asked.to, filledIn(formOf(told.text), {}))).toMatchObject({
      status: 303,
    })
    expect((await client.get(`/participants/${record.id}`)).status).toBe(404)
    expect((await visits.post(asked.to, filledIn(asked, {}))).status).toBe(404)
    expect(
      (await visits.post(`/records/participants/${record.id}/edit`, { full_name: 'x' })).status,
    ).toBe(404)
  })
})

describe('a form without JavaScript', () => {
  it('finds a record by its name, takes the choice, and keeps what was typed', async () => {
    const { client, visits } = await newOwner(app)
    for (let i = 0; i < 12; i++)
      await newParticipant(client, { full_name: `Ada ${i}`, email: `ada${i}@example.com` })
    const grace = await newParticipant(client, {
      full_name: 'Grace Hopper',
      email: 'grace@example.com',
    })
    const typed = { title: 'Call', description: 'soon' }
    const many = await fill(visits, '/records/tasks/new', {
      ...typed,
      participant_id: 'ada',
      'ask:find': 'participant_id',
    })
    expect([many.status, (many.text.match(/name="ask:choose"/g) ?? []).length]).toEqual([200, 8])
    expect(textOf(many.text)).toContain('4 more. Type more of the name.')
    const none = await fill(visits, '/records/tasks/new', {
      ...typed,
      participant_id: 'nobody',
      'ask:find': 'participant_id',
    })
    expect(textOf(none.text)).toContain('No matching participant found.')
    const one = await fill(visits, '/records/tasks/new', {
      ...typed,
      participant_id: 'HOPPER',
      'ask:find': 'participant_id',
    })
    expect(one.text).toContain(`value="participant_id=${grace.id}"`)
    expect(textOf(one.text)).toContain('Grace Hopper grace@example.com')
    const chosen = await visits.post(
      '/records/tasks/new',
      filledIn(formOf(one.text), { 'ask:choose': `participant_id=${grace.id}` }),
    )
    expect(filledIn(formOf(chosen.text), {})).toMatchObject({ ...typed, participant_id: grace.id })
    expect(chosen.text).toContain(
      `<p class="chosen"><a href="/console/records/participants/${grace.id}">Grace Hopper</a></p>`,
    )
    expect((await client.get('/tasks')).body.meta.total).toBe(0)
    const saved = await visits.post('/records/tasks/new', filledIn(formOf(chosen.text), {}))
    expect(saved.status).toBe(303)
    expect((await client.get('/tasks')).body.data).toMatchObject([
      { ...typed, participant_id: grace.id },
    ])
  })

  it('saved with a name for an id: what may be meant is there to be chosen, with the error', async () => {
    const { client, visits } = await newOwner(app)
    const ada = await newParticipant(client)
    const answer = await fill(visits, '/records/tasks/new', {
      title: 'Call',
      participant_id: 'lovelace',
    })
    expect([answer.status, errorsIn(answer.text)]).toEqual([
      422,
      { participant_id: 'Participant must be a UUID.' },
    ])
    expect(answer.text).toContain(`value="participant_id=${ada.id}"`)
    const task = await newTask(client)
    const changed = await fill(visits, `/records/tasks/${task.id}/edit`, {
      participant_id: 'lovelace',
    })
    expect([changed.status, changed.text.includes(`value="participant_id=${ada.id}"`)]).toEqual([
      422,
      true,
    ])
  })

  it('a task for a payment is looked for among those of its participant', async () => {
    const { client, visits } = await newOwner(app)
    const [ada, grace] = [await newParticipant(client), await newParticipant(client)]
    await newTask(client, { title: 'Call Ada', participant_id: ada.id })
    await newTask(client, { title: 'Call Grace', participant_id: grace.id })
    const found = await fill(visits, '/records/payments/new', {
      participant_id: grace.id,
      task_id: 'CALL',
      'ask:find': 'task_id',
    })
    expect(textOf(found.text)).toContain('Call Grace')
    expect(textOf(found.text)).not.toContain('Call Ada')
  })

  it('groups are added and removed, up to what the contract takes, and empty ones are not sent', async () => {
    const { client, visits } = await newOwner(app)
    const key = (index: number): string => `screening_questions.${index}.key`
    let form = formOf((await visits.get('/records/jobs/new')).text)
    const ask = async (values: Values) => {
      const answer = await visits.post('/records/jobs/new', filledIn(form, values))
      expect(answer.status).toBe(200)
      form = formOf(answer.text)
      return answer
    }
    await ask({ title: 'J', [key(0)]: 'first', 'ask:add': 'screening_questions' })
    await ask({ [key(1)]: 'second', 'ask:add': 'screening_questions' })
    const removed = await ask({ 'ask:remove': 'screening_questions.0' })
    expect(filledIn(form, {})).toMatchObject({
      title: 'J',
      [key(0)]: 'second',
      [key(1)]: '',
      'screening_questions:count': '2',
    })
    expect(removed.text).toContain('name="ask:add"')
    const full = await ask({ 'screening_questions:count': '50', 'ask:refresh': '1' })
    expect(full.text).not.toContain('name="ask:add"')
    const saved = await visits.post(
      '/records/jobs/new',
      filledIn(form, { [key(0)]: '', title: 'J' }),
    )
    expect(saved.status).toBe(303)
    expect((await client.get('/jobs')).body.data).toMatchObject([
      { title: 'J', screening_questions: [] },
    ])
  })

  it('the filters of an export are those of the list of what it holds', async () => {
    const { client, visits } = await newOwner(app)
    const first = await visits.get('/records/exports/new')
    expect(textOf(first.text)).toContain('First choose: Resource.')
    const options = /name="resource"[^>]*>(.*?)<\/select>/.exec(first.text)?.[1] ?? ''
    expect([...options.matchAll(/value="(\w*)"/g)].map(([, value]) => value)).toEqual([
      '',
      'participants',
      'tasks',
      'jobs',
      'job_applications',
      'payments',
    ])
    for (const held of resources.filter(({ slug }) => slug !== 'exports')) {
      const shown = await fill(visits, '/records/exports/new', {
        format: 'json',
        resource: held.slug.replaceAll('-', '_'),
        'ask:refresh': '1',
      })
      for (const { name } of held.filters) expect(shown.text).toContain(`name="filters.${name}"`)
      expect(filledIn(formOf(shown.text), {})).toMatchObject({ format: 'json' })
    }
    const ada = await newParticipant(client)
    const found = await fill(visits, '/records/exports/new?resource=tasks', {
      'filters.participant_id': 'love',
      'ask:find': 'filters.participant_id',
    })
    expect(found.text).toContain(`value="filters.participant_id=${ada.id}"`)
    const id = await madeBy(visits, '/records/exports/new?resource=job_applications', {
      format: 'csv',
      'filters.status': ['accepted', 'rejected'],
    })
    expect((await client.get(`/exports/${id}`)).body).toMatchObject({
      resource: 'job_applications',
      filters: { status: 'accepted,rejected' },
    })
  })

  it('the questions of the job that is chosen are asked, each as what it expects', async () => {
    const { client, visits } = await newOwner(app)
    const { id: participant_id } = await newParticipant(client)
    const job = await newJob(client, {
      screening_questions: [
        { key: 'french', label: 'Do you speak French?', requirement: 'must_have', expected: true },
        { key: 'years', label: 'Years?', requirement: 'nice_to_have', expected: 5 },
        { key: 'city', label: 'Where?', requirement: 'nice_to_have', expected: 'Lyon' },
      ],
    })
    const plain = await newJob(client)
    expect(textOf((await visits.get('/records/job-applications/new')).text)).toContain(
      'First choose: Job.',
    )
    expect(
      textOf((await visits.get(`/records/job-applications/new?job_id=${plain.id}`)).text),
    ).toContain('No fields to fill in.')
    const chosen = await fill(visits, '/records/job-applications/new', {
      participant_id,
      'ask:choose': `job_id=${job.id}`,
    })
    expect(textOf(chosen.text)).toMatch(
      /Do you speak French\? optional Must have\..* Years\? optional Nice to have\..* Where\?/,
    )
    const wrong = await visits.post(
      '/records/job-applications/new',
      filledIn(formOf(chosen.text), { 'answers.years': 'five', 'answers.city': 'x'.repeat(2001) }),
    )
    expect([wrong.status, errorsIn(wrong.text)]).toEqual([
      422,
      {
        'answers-years': 'Years? must be a number.',
        'answers-city': expect.stringContaining('Where? must have at most 2000 characters.'),
      },
    ])
    expect(filledIn(formOf(wrong.text), {})).toMatchObject({
      'answers.years': 'five',
      job_id: job.id,
    })
    const saved = await visits.post(
      '/records/job-applications/new',
      filledIn(formOf(wrong.text), {
        'answers.years': '5',
        'answers.city': '5',
        'answers.french': 'false',
      }),
    )
    expect(saved.status).toBe(303)
    expect((await client.get('/job-applications')).body.data[0].answers).toEqual({
      french: false,
      years: 5,
      city: '5',
    })
  })
})

describe('a form that is not from here', () => {
  it('a record that is refused in part changes nothing, and names what no field shows', async () => {
    const { client, visits } = await newOwner(app)
    const answer = await visits.post('/records/exports/new', {
      resource: 'tasks',
      format: 'csv',
      filters: '{"nothing": "1"}',
    })
    expect(answer.status).toBe(422)
    expect(errorsIn(answer.text).filters).toContain('nothing is not a recognised field.')
    const broken = await visits.post('/records/exports/new', {
      resource: 'tasks',
      format: 'pdf',
      filters: '{"status": ',
    })
    expect(errorsIn(broken.text)).toMatchObject({
      format: expect.stringContaining('must be one of csv, json.'),
      filters: expect.stringContaining('must be valid JSON'),
    })
    expect(filledIn(formOf(broken.text), {})).toMatchObject({
      filters: '{"status": ',
      format: 'pdf',
    })
    const list = await visits.post('/records/exports/new', {
      resource: 'tasks',
      format: 'csv',
      filters: '[]',
    })
    expect(errorsIn(list.text).filters).toContain('must be an object.')
    const stored = await visits.post('/records/exports/new', {
      resource: 'tasks',
      format: 'csv',
      filters: '{"status": "\\u0000"}',
    })
    expect(stored.status).toBe(422)
    expect((await client.get('/exports')).body.meta.total).toBe(0)
  })

  it('what is not in the form stays, what is unknown is not looked at, and too much is refused', async () => {
    const { client, visits } = await newOwner(app)
    const record = await newParticipant(client, { phone: '1', tags: ['a'] })
    const edit = `/records/participants/${record.id}/edit`
    expect(
      await visits.post(edit, {
        full_name: 'Ada',
        id: randomUUID(),
        account_id: randomUUID(),
        created_at: 'x',
      }),
    ).toMatchObject({
      status: 303,
    })
    expect((await client.get(`/participants/${record.id}`)).body).toEqual({
      ...record,
      full_name: 'Ada',
      updated_at: expect.any(String),
    })
    const many = Object.fromEntries(
      Array.from({ length: 2_001 }, (_, index) => [`screening_questions.${index}.key`, 'x']),
    )
    expect((await visits.post('/records/jobs/new', { title: 'J', ...many })).status).toBe(413)
    expect(
      (await visits.post('/records/jobs/new', { title: 'J', 'screening_questions:count': '1e9' }))
        .status,
    ).toBe(303)
    expect(
      (await visits.post('/records/jobs/new', { title: 'J', 'ask:find': 'title' })).status,
    ).toBe(200)
    expect(
      (
        await visits.post('/records/jobs/new', {
          title: 'J',
          'ask:remove': 'title.0',
          'ask:add': 'title',
        })
      ).status,
    ).toBe(303)
  })
})
