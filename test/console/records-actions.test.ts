/** The next steps of a record, record forms without JavaScript, and the deletion of an export. */
import { describe, expect, it } from 'vitest'
import { resources } from '../../generated/resources.ts'
import { isForPrograms } from '../../web/console/records/resources.ts'
import {
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
} from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import {
  fieldErrors,
  formsIn,
  mainForm,
  mainText,
  submitForm,
  type Values,
  withValues,
} from './forms.ts'
import { createByForm, newOwner, writeExportFile } from './record-forms.ts'
import { memberWith, newConsoleUser, type Visitor, visitor } from './visitors.ts'

const app = sharedApp()

describe('the next steps of a record', () => {
  /** The buttons with a status, by their labels: the path and values of their forms. */
  async function stepsOf(visits: Visitor, path: string) {
    const { text } = await visits.get(path)
    return Object.fromEntries(
      formsIn(text)
        .filter(({ to }) => to.endsWith('/set-status'))
        .map((form) => [form.button, { to: form.to, values: withValues(form, {}) }]),
    )
  }

  it('are the statuses that can follow, and set them', async () => {
    const { client, visits } = await newOwner(app)
    const application = await newApplication(client)
    const path = `/records/job-applications/${application.id}`
    const steps = await stepsOf(visits, path)
    expect(Object.keys(steps)).toEqual(['Shortlist', 'Reject', 'Mark as withdrawn'])
    const { to = '', values = {} } = steps.Shortlist ?? {}
    const answer = await visits.submit(to, values)
    expect(mainText(answer.text)).toMatch(
      /Status set to Shortlisted\. .* Accept Accept\? .* Reject Reject\? /,
    )
    expect((await client.get(`/job-applications/${application.id}`)).body.status).toBe(
      'shortlisted',
    )
    expect(Object.keys(await stepsOf(visits, path))).toEqual([
      'Accept',
      'Reject',
      'Mark as withdrawn',
    ])
    // The response of the first request got lost.
    expect(mainText((await visits.submit(to, values)).text)).toContain('Status set to Shortlisted.')
    const task = await newTask(client)
    expect(Object.keys(await stepsOf(visits, `/records/tasks/${task.id}`))).toEqual([
      'Complete',
      'Start',
      'Cancel task',
    ])
  })

  it('a final status asks for a confirmation, which names the record', async () => {
    const { client, visits } = await newOwner(app)
    const payment = await newPayment(client)
    const path = `/records/payments/${payment.id}`
    expect(mainText((await visits.get(path)).text)).toMatch(
      /Mark as paid Mark as paid\? Ada Lovelace, €125\.00\. “Paid” is final: .* Mark as paid Close/,
    )
    const { to = '', values = {} } = (await stepsOf(visits, path))['Mark as paid'] ?? {}
    const answer = await visits.submit(to, values)
    expect(mainText(answer.text)).toContain('Status set to Paid.')
    expect(await stepsOf(visits, path)).toEqual({})
  })

  it('a record that a colleague has updated, or that refuses: keeps its status, and says why', async () => {
    const { client, visits } = await newOwner(app)
    const payment = await newPayment(client)
    const path = `/records/payments/${payment.id}`
    const { to = '', values = {} } = (await stepsOf(visits, path))['Mark as paid'] ?? {}
    await client.patch(`/payments/${payment.id}`, { amount_minor: 999_900 })
    expect(mainText((await visits.submit(to, values)).text)).toContain(
      'Someone else has updated this record, so its status is not set.',
    )
    const { body } = await client.get(`/payments/${payment.id}`)
    expect(body.status).toBe('pending')
    await client.patch(`/payments/${payment.id}`, { status: 'cancelled' })
    const refused = await visits.submit(to, { status: 'paid' })
    expect(mainText(refused.text)).toMatch(/Status cannot/)
  })

  it('are the choices of the form, too, with the current status', async () => {
    const { client, visits } = await newOwner(app)
    const application = await newApplication(client)
    const { text } = await visits.get(`/records/job-applications/${application.id}/edit`)
    expect([...text.matchAll(/<option value="(\w+)"/g)].map(([, value]) => value)).toEqual([
      'submitted',
      'shortlisted',
      'rejected',
      'withdrawn',
    ])
  })

  it('are not offered to users who may only read', async () => {
    const { client, account } = await newOwner(app)
    const payment = await newPayment(client)
    const visits = await memberWith(app, account, { finance: 'read' })
    const path = `/records/payments/${payment.id}`
    expect(await stepsOf(visits, path)).toEqual({})
    expect((await visits.post(`${path}/set-status`, { status: 'paid' })).status).toBe(404)
  })
})

describe('a form without JavaScript', () => {
  it('finds a record by name, selects it, and keeps the typed text', async () => {
    const { client, visits } = await newOwner(app)
    for (let i = 0; i < 12; i++)
      await newParticipant(client, { full_name: `Ada ${i}`, email: `ada${i}@example.com` })
    const grace = await newParticipant(client, {
      full_name: 'Grace Hopper',
      email: 'grace@example.com',
    })
    const input = { title: 'Call', description: 'soon' }
    const many = await submitForm(visits, '/records/tasks/new', {
      ...input,
      participant_id: 'ada',
      'ask:find': 'participant_id',
    })
    expect([many.status, (many.text.match(/name="ask:choose"/g) ?? []).length]).toEqual([200, 8])
    expect(mainText(many.text)).toContain('4 more. Type more of the name.')
    const none = await submitForm(visits, '/records/tasks/new', {
      ...input,
      participant_id: 'nobody',
      'ask:find': 'participant_id',
    })
    expect(mainText(none.text)).toContain('No matching participant found.')
    const one = await submitForm(visits, '/records/tasks/new', {
      ...input,
      participant_id: 'HOPPER',
      'ask:find': 'participant_id',
    })
    expect(one.text).toContain(`value="participant_id=${grace.id}"`)
    expect(mainText(one.text)).toContain('Grace Hopper grace@example.com')
    const selected = await visits.post(
      '/records/tasks/new',
      withValues(mainForm(one.text), { 'ask:choose': `participant_id=${grace.id}` }),
    )
    expect(withValues(mainForm(selected.text), {})).toMatchObject({
      ...input,
      participant_id: grace.id,
    })
    expect(mainText(selected.text)).toMatch(/Participant optional Grace Hopper Active Change /)
    expect(mainText(selected.text)).not.toContain(grace.id)
    expect((await client.get('/tasks')).body.meta.total).toBe(0)
    const saved = await visits.post('/records/tasks/new', withValues(mainForm(selected.text), {}))
    expect(saved.status).toBe(303)
    expect((await client.get('/tasks')).body.data).toMatchObject([
      { ...input, participant_id: grace.id },
    ])
  })

  it('gets 422 with search results for a name that was not chosen', async () => {
    const { client, visits } = await newOwner(app)
    const ada = await newParticipant(client)
    const answer = await submitForm(visits, '/records/tasks/new', {
      title: 'Call',
      participant_id: 'lovelace',
    })
    expect([answer.status, fieldErrors(answer.text)]).toEqual([
      422,
      { participant_id: 'Choose a participant from the list.' },
    ])
    expect(answer.text).toContain(`value="participant_id=${ada.id}"`)
    const task = await newTask(client)
    const changed = await submitForm(visits, `/records/tasks/${task.id}/edit`, {
      participant_id: 'lovelace',
    })
    expect([changed.status, changed.text.includes(`value="participant_id=${ada.id}"`)]).toEqual([
      422,
      true,
    ])
  })

  it('searches the task of a payment among those of its participant', async () => {
    const { client, visits } = await newOwner(app)
    const [ada, grace] = [await newParticipant(client), await newParticipant(client)]
    await newTask(client, { title: 'Call Ada', participant_id: ada.id })
    await newTask(client, { title: 'Call Grace', participant_id: grace.id })
    const found = await submitForm(visits, '/records/payments/new', {
      participant_id: grace.id,
      task_id: 'CALL',
      'ask:find': 'task_id',
    })
    expect(mainText(found.text)).toContain('Call Grace')
    expect(mainText(found.text)).not.toContain('Call Ada')
  })

  it('adds groups up to the limit of the contract, removes them, and does not save empty ones', async () => {
    const { client, visits } = await newOwner(app)
    const key = (index: number): string => `screening_questions.${index}.key`
    let form = mainForm((await visits.get('/records/jobs/new')).text)
    const ask = async (values: Values) => {
      const answer = await visits.post('/records/jobs/new', withValues(form, values))
      expect(answer.status).toBe(200)
      form = mainForm(answer.text)
      return answer
    }
    await ask({ title: 'J', [key(0)]: 'first', 'ask:add': 'screening_questions' })
    await ask({ [key(1)]: 'second', 'ask:add': 'screening_questions' })
    const removed = await ask({ 'ask:remove': 'screening_questions.0' })
    expect(withValues(form, {})).toMatchObject({
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
      withValues(form, { [key(0)]: '', title: 'J' }),
    )
    expect(saved.status).toBe(303)
    expect((await client.get('/jobs')).body.data).toMatchObject([
      { title: 'J', screening_questions: [] },
    ])
  })

  it('shows the filters of the selected resource for an export, and finds records for them', async () => {
    const { client, visits } = await newOwner(app)
    const first = await visits.get('/records/exports/new')
    expect(mainText(first.text)).toContain('Choose the records to see their filters.')
    const options = /name="resource"[^>]*>(.*?)<\/select>/s.exec(first.text)?.[1] ?? ''
    const values = [...options.matchAll(/value="(\w*)"/g)].map(([, value]) => value)
    expect(values).toEqual(['', 'participants', 'tasks', 'jobs', 'job_applications', 'payments'])
    for (const { slug, filters } of resources.filter(({ slug }) => slug !== 'exports')) {
      const shown = await submitForm(visits, '/records/exports/new', {
        format: 'json',
        resource: slug.replaceAll('-', '_'),
        'ask:refresh': '1',
      })
      for (const { name } of filters.filter((filter) => !isForPrograms(filter)))
        expect(shown.text).toContain(`name="filters.${name}"`)
      expect(withValues(mainForm(shown.text), {})).toMatchObject({ format: 'json' })
    }
    const ada = await newParticipant(client)
    const found = await submitForm(visits, '/records/exports/new?resource=tasks', {
      'filters.participant_id': 'love',
      'ask:find': 'filters.participant_id',
    })
    expect(found.text).toContain(`value="filters.participant_id=${ada.id}"`)
    const id = await createByForm(visits, '/records/exports/new?resource=job_applications', {
      format: 'csv',
      'filters.status': ['accepted', 'rejected'],
    })
    expect((await client.get(`/exports/${id}`)).body).toMatchObject({
      resource: 'job_applications',
      filters: { status: 'accepted,rejected' },
      columns: [],
    })
  })

  it('offers the columns of the selected resource for an export, all of them at first', async () => {
    const { client, visits } = await newOwner(app)
    const first = await visits.get('/records/exports/new?resource=payments')
    const chosen = (text: string): string[] =>
      [...text.matchAll(/name="columns" value="(\w+)" checked/g)].map(([, name = '']) => name)
    expect(chosen(first.text)).toContain('amount_minor')
    const form = withValues(mainForm(first.text), { columns: ['id', 'status'] })
    const kept = await visits.post('/records/exports/new', { ...form, 'ask:refresh': '1' })
    expect(chosen(kept.text)).toEqual(['id', 'status'])
    const other = { ...withValues(mainForm(kept.text), { resource: 'jobs' }), 'ask:refresh': '1' }
    expect(chosen((await visits.post('/records/exports/new', other)).text)).toContain('title')

    for (const format of ['csv', 'json'])
      await createByForm(visits, '/records/exports/new?resource=payments', {
        columns: ['id', 'status'],
        format,
      })
    const { data } = (await client.get('/exports?sort=created_at')).body
    expect(data.map(({ columns }: { columns: string[] }) => columns)).toEqual([
      ['id', 'status'],
      [],
    ])

    const none = await submitForm(visits, '/records/exports/new?resource=jobs', { columns: [] })
    expect([none.status, fieldErrors(none.text)]).toEqual([
      422,
      { columns: 'Columns must have at least one.' },
    ])
    const wrong = await submitForm(visits, '/records/exports/new?resource=jobs', {
      columns: 'amount_minor',
    })
    expect(wrong.status).toBe(422)
    expect(fieldErrors(wrong.text).columns).toContain('must be one of id, title,')
  })

  it('shows the questions of the selected job, each with the type of its answer', async () => {
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
    expect(mainText((await visits.get('/records/job-applications/new')).text)).toContain(
      'Choose a job to see its questions.',
    )
    expect(
      mainText((await visits.get(`/records/job-applications/new?job_id=${plain.id}`)).text),
    ).toContain('No fields to fill in.')
    const selected = await submitForm(visits, '/records/job-applications/new', {
      participant_id,
      'ask:choose': `job_id=${job.id}`,
    })
    expect(mainText(selected.text)).toMatch(
      /Do you speak French\? Must have .* Years\? Nice to have Where\? Nice to have/,
    )
    const wrong = await visits.post(
      '/records/job-applications/new',
      withValues(mainForm(selected.text), {
        'answers.years': 'five',
        'answers.city': 'x'.repeat(2001),
      }),
    )
    expect([wrong.status, fieldErrors(wrong.text)]).toEqual([
      422,
      {
        'answers-years': 'Years? must be a number.',
        'answers-city': expect.stringContaining('Where? must have at most 2000 characters.'),
      },
    ])
    expect(withValues(mainForm(wrong.text), {})).toMatchObject({
      'answers.years': 'five',
      job_id: job.id,
    })
    const saved = await visits.post(
      '/records/job-applications/new',
      withValues(mainForm(wrong.text), {
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

describe('the deletion of an export', () => {
  it('does not announce events, and succeeds although the export has progressed meanwhile', async () => {
    const { client, visits } = await newOwner(app)
    const { body: created } = await client.post('/exports', { resource: 'tasks', format: 'csv' })
    const page = await visits.get(`/records/exports/${created.id}/delete`)
    expect(mainText(page.text)).toContain('This cannot be undone.')
    expect(page.text).not.toContain('webhooks will be notified')
    await writeExportFile(app, created.id)
    const answer = await visits.post(
      `/records/exports/${created.id}/delete`,
      withValues(mainForm(page.text), {}),
    )
    expect(answer.status).toBe(303)
    expect((await client.get(`/exports/${created.id}`)).status).toBe(404)
  })

  it('has no button and gets 403 for a user who cannot view its records', async () => {
    const { account, client, visits: owner } = await newOwner(app)
    const { body: created } = await client.post('/exports', { resource: 'payments', format: 'csv' })
    const person = await newConsoleUser(app, account.accountId, {
      role: 'admin',
      permissions: { finance: 'none', exports: 'write' },
    })
    const visits = await visitor(app, person)
    const path = `/records/exports/${created.id}`
    expect((await owner.get(path)).text).toContain(`${path}/delete`)
    expect((await visits.get(path)).text).not.toContain(`${path}/delete`)
    const page = await visits.get(`${path}/delete`)
    const answer = await visits.post(`${path}/delete`, withValues(mainForm(page.text), {}))
    expect([answer.status, mainText(answer.text)]).toEqual([
      403,
      expect.stringContaining('You do not have access to the records of this export'),
    ])
    expect((await client.get(`/exports/${created.id}`)).status).toBe(200)
  })
})
