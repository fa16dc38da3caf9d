/** Record forms show each error at its field, and reject invalid submissions. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { resources } from '../../generated/resources.ts'
import type { Schema } from '../../scripts/model/schema.ts'
import { expectSuccess, newJob, newParticipant, UNKNOWN_ID } from '../handlers/new-records.ts'
import { type Answer, sharedApp } from '../helpers.ts'
import { fieldErrors, mainForm, submitForm, type Values, withValues } from './forms.ts'
import {
  apiPath,
  asInput,
  newOwner,
  newRecordOfEach,
  type Owner,
  type RecordOfResource,
  resourceBySlug,
} from './record-forms.ts'

const app = sharedApp()

/** What a user types, and the equal value for the API. */
interface InvalidValue {
  input: string
  value: unknown
}

interface InvalidField extends InvalidValue {
  slug: string
  field: string
  /** The input in the title of the test. */
  shown: string
}

/** For each field, the invalid values that a user can type. */
function invalidFields(slug: string, { properties = {} }: Schema): InvalidField[] {
  // Columns are checkboxes: see records-actions.test.ts.
  const { columns: _, ...typed } = properties
  return Object.entries(typed).flatMap(([field, schema]) =>
    invalidValues(schema).map(({ input, value }) => {
      const shown = input.length > 30 ? `${input.length} characters` : JSON.stringify(input)
      return { slug, field, input, value, shown }
    }),
  )
}

function invalidValues(schema: Schema): InvalidValue[] {
  const { type, format, maxLength, minimum = 0, maximum = 0, items, uniqueItems } = schema
  const text = (input: string): InvalidValue => ({ input, value: input })
  const integer = (value: number): InvalidValue => ({ input: String(value), value })
  const list = (value: string[]): InvalidValue => ({ input: value.join('\r\n'), value })
  // The form has its own messages for amounts: see amounts.test.ts.
  if (schema['x-currency']) return []
  if (schema.enum) return [text('none_of_these')]
  if (type === 'integer')
    return [text('many'), text('1.5'), integer(minimum - 1), integer(maximum + 1)]
  if (format) return [text('nonsense'), ...(maxLength ? [text('x'.repeat(maxLength + 1))] : [])]
  if (type === 'string' && maxLength) return [text('é'.repeat(maxLength + 1))]
  if (items?.type === 'string') {
    const tooLong = list(['a', 'x'.repeat((items.maxLength ?? 0) + 1)])
    return uniqueItems ? [tooLong, list(['a', 'a'])] : [tooLong]
  }
  return []
}

/** The key of the field in `fieldErrors`. */
const errorId = (field: string): string => field.replace(/\W/g, '-')

const creations = resources.flatMap(({ slug, creation }) => invalidFields(slug, creation ?? {}))
const changes = resources.flatMap(({ slug, change }) => invalidFields(slug, change ?? {}))

describe('invalid values', () => {
  let owner: Owner
  let records: Record<string, RecordOfResource>
  beforeAll(async () => {
    owner = await newOwner(app)
    records = await newRecordOfEach(owner.client)
  })

  /** Expects that the form shows the errors of the API at the field, and keeps the input. */
  async function expectRefusal(
    formPath: string,
    field: string,
    input: Values,
    api: Answer,
  ): Promise<void> {
    const sent = withValues(mainForm((await owner.visits.get(formPath)).text), input)
    const answer = await owner.visits.post(formPath, sent)
    expect([answer.status, api.status]).toEqual([422, 422])
    const shown = fieldErrors(answer.text)[errorId(field)]
    if (field.endsWith('_id') && input[field] === 'nonsense')
      expect(shown).toMatch(/^Choose a (participant|task|job) from the list\.$/)
    else {
      for (const message of Object.values<string[]>(api.body.errors).flat())
        expect(shown).toContain(message)
    }
    const { 'amount_minor:seen': _, ...typed } = sent
    expect(withValues(mainForm(answer.text), {})).toMatchObject(typed)
  }

  it.each(creations)(
    '$slug: a new record with $field $shown gets 422 with the message of the API',
    async ({ slug, field, input, value }) => {
      const path = apiPath(resourceBySlug(slug))
      const before = (await owner.client.get(path)).body.meta.total
      const body = records[slug]?.body
      const api = await owner.client.post(path, { ...body, [field]: value })
      await expectRefusal(`/records/${slug}/new`, field, { ...asInput(body), [field]: input }, api)
      expect((await owner.client.get(path)).body.meta.total).toBe(before)
    },
  )

  it.each(changes)(
    '$slug: an update of $field to $shown gets 422 with the message of the API',
    async ({ slug, field, input, value }) => {
      const recordPath = `${apiPath(resourceBySlug(slug))}/${records[slug]?.id}`
      const before = (await owner.client.get(recordPath)).text
      const api = await owner.client.patch(recordPath, { [field]: value })
      await expectRefusal(
        `/records/${slug}/${records[slug]?.id}/edit`,
        field,
        { [field]: input },
        api,
      )
      expect((await owner.client.get(recordPath)).text).toBe(before)
    },
  )

  const required = resources.flatMap(({ slug, creation }) =>
    (creation?.required ?? []).map((field) => ({ slug, field })),
  )
  it.each(required)('$slug: a new record without $field gets 422', async ({ slug, field }) => {
    const answer = await submitForm(owner.visits, `/records/${slug}/new`, {
      ...asInput(records[slug]?.body),
      [field]: '',
    })
    expect(answer.status).toBe(422)
    expect(fieldErrors(answer.text)[errorId(field)]).toContain('is required.')
  })

  it('shows errors of a question at the field of its group', async () => {
    const group = (index: number, values: Record<string, string>): Values =>
      Object.fromEntries(
        Object.entries(values).map(([name, value]) => [
          `screening_questions.${index}.${name}`,
          value,
        ]),
      )
    const good = { key: 'a', label: 'A?', requirement: 'must_have', expected: 'x' }
    const answer = await submitForm(owner.visits, '/records/jobs/new', {
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
    // The empty group disappears, and the groups after it move up.
    expect([answer.status, Object.keys(fieldErrors(answer.text))]).toEqual([
      422,
      [
        ...['label', 'requirement', 'expected', 'key'].map(
          (part) => `screening_questions-1-${part}`,
        ),
        'screening_questions-2-label',
      ],
    ])
    expect(fieldErrors(answer.text)['screening_questions-1-expected']).toContain(
      'must be a number.',
    )
    expect(withValues(mainForm(answer.text), {})).toMatchObject({
      ...group(0, good),
      ...group(1, {
        key: 'not a key',
        requirement: 'perhaps',
        expected: 'five',
        'expected:kind': 'number',
      }),
    })

    const twice = await submitForm(owner.visits, '/records/jobs/new', {
      title: 'J',
      ...group(0, good),
      ...group(1, good),
    })
    expect(fieldErrors(twice.text)).toEqual({
      'screening_questions-1-key': 'Key is the key of another question: a.',
    })
  })

  it('opens the fold of a field with a value or an error', async () => {
    const { client, visits } = owner
    const fold = (text: string): string =>
      /<details class="more-fields"( open)?>\s*<summary>ID in your own system/.exec(text)?.[0] ?? ''
    const { id } = await newParticipant(client)
    const edit = `/records/participants/${id}/edit`
    expect(fold((await visits.get(edit)).text)).toMatch(/fields">/)
    const tooLong = { external_id: 'x'.repeat(300) }
    expect(fold((await submitForm(visits, edit, tooLong)).text)).toMatch(/open>/)
    await expectSuccess(client.patch(`/participants/${id}`, { external_id: 'crm-4711' }))
    expect(fold((await visits.get(edit)).text)).toMatch(/open>/)
  })

  it('shows errors that depend on other records at their field', async () => {
    const { client, visits } = owner
    await newParticipant(client, { email: 'taken@example.com', external_id: 'taken' })
    const taken = await submitForm(visits, '/records/participants/new', {
      full_name: 'A',
      email: 'TAKEN@example.com',
    })
    expect(fieldErrors(taken.text)).toEqual({ email: 'Email is used by another participant.' })
    const unknown = await submitForm(visits, '/records/tasks/new', {
      title: 'T',
      participant_id: UNKNOWN_ID,
    })
    expect(fieldErrors(unknown.text)).toEqual({
      participant_id: 'Participant does not name a participant of your account.',
    })
    const draft = await newJob(client, { status: 'draft' })
    const closed = await submitForm(visits, '/records/job-applications/new', {
      ...asInput(records['job-applications']?.body),
      job_id: draft.id,
    })
    expect(fieldErrors(closed.text)).toEqual({
      job_id: 'Job names a job that takes no applications: it is draft.',
    })
    const job = await newJob(client)
    const moved = await submitForm(visits, `/records/jobs/${job.id}/edit`, { status: 'draft' })
    expect(fieldErrors(moved.text)).toEqual({
      status: 'Status cannot become draft: it is open, which can only become closed.',
    })
    const filters = await submitForm(visits, '/records/exports/new?resource=tasks', {
      format: 'csv',
      'filters.participant_id': 'nobody',
      'filters.due_after': 'x',
    })
    expect(Object.keys(fieldErrors(filters.text)).sort()).toEqual([
      'filters-due_after',
      'filters-participant_id',
    ])
    expect(withValues(mainForm(filters.text), {})).toMatchObject({
      'filters.participant_id': 'nobody',
      'filters.due_after': 'x',
    })
  })
})

describe('a form that the console did not render', () => {
  it.each([
    {
      name: 'an unknown filter',
      fields: { format: 'csv', filters: '{"nothing": "1"}' },
      errors: { filters: 'nothing is not a recognised field.' },
    },
    {
      name: 'broken JSON and an unknown format',
      fields: { format: 'pdf', filters: '{"status": ' },
      errors: { format: 'must be one of csv, csv_raw, json, xlsx.', filters: 'must be valid JSON' },
    },
    {
      name: 'a list in place of an object',
      fields: { format: 'csv', filters: '[]' },
      errors: { filters: 'must be an object.' },
    },
    {
      name: 'a NUL character',
      fields: { format: 'csv', filters: '{"status": "\\u0000"}' },
      errors: {},
    },
  ])('with $name in the JSON of an export: 422, and creates none', async ({ fields, errors }) => {
    const { client, visits } = await newOwner(app)
    const answer = await visits.post('/records/exports/new', { resource: 'tasks', ...fields })
    expect(answer.status).toBe(422)
    const shown = fieldErrors(answer.text)
    for (const [field, message] of Object.entries(errors)) expect(shown[field]).toContain(message)
    expect((await client.get('/exports')).body.meta.total).toBe(0)
  })

  it('with broken JSON: keeps the input', async () => {
    const { visits } = await newOwner(app)
    const fields = { resource: 'tasks', format: 'pdf', filters: '{"status": ' }
    const answer = await visits.post('/records/exports/new', fields)
    expect(withValues(mainForm(answer.text), {})).toMatchObject(fields)
  })

  it('with a few of the fields and unknown ones: updates only the known fields that it sends', async () => {
    const { client, visits } = await newOwner(app)
    const record = await newParticipant(client, { phone: '1', tags: ['a'] })
    const answer = await visits.post(`/records/participants/${record.id}/edit`, {
      full_name: 'Ada',
      id: randomUUID(),
      account_id: randomUUID(),
      created_at: 'x',
    })
    expect(answer.status).toBe(303)
    expect((await client.get(`/participants/${record.id}`)).body).toEqual({
      ...record,
      full_name: 'Ada',
      updated_at: expect.any(String),
    })
  })

  it('with more than 2,000 groups: 413', async () => {
    const { visits } = await newOwner(app)
    const groups = Object.fromEntries(
      Array.from({ length: 2_001 }, (_, index) => [`screening_questions.${index}.key`, 'x']),
    )
    const answer = await visits.post('/records/jobs/new', { title: 'J', ...groups })
    expect(answer.status).toBe(413)
  })

  it.each([
    {
      name: 'a count of 1e9 groups',
      field: 'screening_questions:count',
      value: '1e9',
    },
    {
      name: 'the removal of a group of a field without groups',
      field: 'ask:remove',
      value: 'title.0',
    },
    { name: 'another group for a field without groups', field: 'ask:add', value: 'title' },
  ])('with $name: ignores it and creates the job', async ({ field, value }) => {
    const { client, visits } = await newOwner(app)
    const answer = await visits.post('/records/jobs/new', { title: 'J', [field]: value })
    expect(answer.status).toBe(303)
    expect((await client.get('/jobs')).body.data).toMatchObject([
      { title: 'J', screening_questions: [] },
    ])
  })

  it('with a search for a field that is no reference: shows the form again', async () => {
    const { client, visits } = await newOwner(app)
    const answer = await visits.post('/records/jobs/new', { title: 'J', 'ask:find': 'title' })
    expect(answer.status).toBe(200)
    expect(withValues(mainForm(answer.text), {})).toMatchObject({ title: 'J' })
    expect((await client.get('/jobs')).body.meta.total).toBe(0)
  })
})
