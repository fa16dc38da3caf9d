/** Record forms show each error at its field, and reject invalid submissions. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { resources } from '../../generated/resources.ts'
import type { Schema } from '../../scripts/model/schema.ts'
import { type Body, newJob, newParticipant, UNKNOWN_ID } from '../handlers/new-records.ts'
import { type Answer, sharedApp } from '../helpers.ts'
import { fieldErrors, mainForm, submitForm, type Values, withValues } from './forms.ts'
import {
  apiPath,
  asInput,
  newOwner,
  newRecordOfEach,
  type Owner,
  resourceBySlug,
} from './record-forms.ts'

const app = sharedApp()

interface InvalidValue {
  field: string
  /** The input, and the equal value for the API. */
  typed: string
  value: unknown
}

/** For each field, the invalid values that a user can type. */
function invalidValues({ properties = {} }: Schema): InvalidValue[] {
  return Object.entries(properties).flatMap(([field, schema]) =>
    invalidFor(schema).map(([typed, value]) => ({ field, typed, value })),
  )
}

function invalidFor(schema: Schema): [typed: string, value: unknown][] {
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

/** The key of the field in `fieldErrors`. */
const errorId = (field: string): string => field.replace(/\W/g, '-')

const creations = resources.flatMap((resource) =>
  invalidValues(resource.creation ?? {}).map((wrong) => ({ slug: resource.slug, ...wrong })),
)
const changes = resources.flatMap((resource) =>
  invalidValues(resource.change ?? {}).map((wrong) => ({ slug: resource.slug, ...wrong })),
)
const describeInput = ({ typed }: InvalidValue): string =>
  typed.length > 30 ? `${typed.length} characters` : JSON.stringify(typed)

describe('invalid values', () => {
  let owner: Owner
  let records: Record<string, { id: string; body: Body }>
  beforeAll(async () => {
    owner = await newOwner(app)
    records = await newRecordOfEach(owner.client)
  })

  /** The form shows the errors of the API at the field, and keeps the input. */
  async function expectRefusal(
    to: string,
    field: string,
    typed: Values,
    api: Answer,
  ): Promise<void> {
    const sent = withValues(mainForm((await owner.visits.get(to)).text), typed)
    const answer = await owner.visits.post(to, sent)
    expect([answer.status, api.status]).toEqual([422, 422])
    const shown = fieldErrors(answer.text)[errorId(field)]
    for (const message of Object.values<string[]>(api.body.errors).flat())
      expect(shown).toContain(message)
    expect(withValues(mainForm(answer.text), {})).toMatchObject(sent)
  }

  it.each(creations.map((row) => ({ ...row, says: describeInput(row) })))(
    '$slug: a new one with $field $says → 422 in the words of the API',
    async ({ slug, field, typed, value }) => {
      const path = apiPath(resourceBySlug(slug))
      const before = (await owner.client.get(path)).body.meta.total
      const body = records[slug]?.body
      const api = await owner.client.post(path, { ...body, [field]: value })
      await expectRefusal(`/records/${slug}/new`, field, { ...asInput(body), [field]: typed }, api)
      expect((await owner.client.get(path)).body.meta.total).toBe(before)
    },
  )

  it.each(changes.map((row) => ({ ...row, says: describeInput(row) })))(
    '$slug: $field changed to $says → 422 in the words of the API',
    async ({ slug, field, typed, value }) => {
      const own = `${apiPath(resourceBySlug(slug))}/${records[slug]?.id}`
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
        ...['key', 'label', 'requirement', 'expected'].map(
          (part) => `screening_questions-1-${part}`,
        ),
        'screening_questions-2-label',
      ],
    ])
    expect(fieldErrors(answer.text)['screening_questions-1-expected']).toContain(
      'must be a number.',
    )
    const sent = withValues(mainForm(answer.text), {})
    expect(sent).toMatchObject({
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
  it('422 changes nothing, and names errors without a field', async () => {
    const { client, visits } = await newOwner(app)
    const answer = await visits.post('/records/exports/new', {
      resource: 'tasks',
      format: 'csv',
      filters: '{"nothing": "1"}',
    })
    expect(answer.status).toBe(422)
    expect(fieldErrors(answer.text).filters).toContain('nothing is not a recognised field.')
    const broken = await visits.post('/records/exports/new', {
      resource: 'tasks',
      format: 'pdf',
      filters: '{"status": ',
    })
    expect(fieldErrors(broken.text)).toMatchObject({
      format: expect.stringContaining('must be one of csv, csv_raw, json.'),
      filters: expect.stringContaining('must be valid JSON'),
    })
    expect(withValues(mainForm(broken.text), {})).toMatchObject({
      filters: '{"status": ',
      format: 'pdf',
    })
    const list = await visits.post('/records/exports/new', {
      resource: 'tasks',
      format: 'csv',
      filters: '[]',
    })
    expect(fieldErrors(list.text).filters).toContain('must be an object.')
    const stored = await visits.post('/records/exports/new', {
      resource: 'tasks',
      format: 'csv',
      filters: '{"status": "\\u0000"}',
    })
    expect(stored.status).toBe(422)
    expect((await client.get('/exports')).body.meta.total).toBe(0)
  })

  it('keeps missing fields, ignores unknown ones, and rejects too many', async () => {
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
