/** Every field of participants, tasks and jobs: with values up to its limits, and updated alone. */
import { describe, expect, test } from 'vitest'
import { sharedApp } from '../helpers.ts'
import { expectRead, expectUpdate } from './checks.ts'
import { expectSuccess, withNulls } from './new-records.ts'

const app = sharedApp()

const question = (fields: object = {}): object => ({
  key: 'french',
  label: 'French?',
  requirement: 'must_have',
  operator: 'equals',
  expected: true,
  ...fields,
})
const questions = (...list: object[]): object => ({ screening_questions: list.map(question) })

const longest = {
  full_name: `${'👩‍🚀'.repeat(66)}xx`,
  email: `${'x'.repeat(64)}@${'y'.repeat(63)}.${'z'.repeat(63)}.${'w'.repeat(58)}.de`,
  phone: '5'.repeat(50),
  tags: Array.from({ length: 50 }, (_, i) => `${i}`.padStart(50, '-')),
  external_id: 'ä'.repeat(200),
}

interface Kind {
  name: 'Participant' | 'Task' | 'Job'
  path: string
  required: object
  /** The defaults of the contract. */
  defaults: object
  /** Fields of create requests. */
  creations: object[]
  /** Fields of the record before each update, which gives them other values. */
  before: object
  /** Fields of update requests. */
  changes: object[]
}

const kinds: Kind[] = [
  {
    name: 'Participant',
    path: '/participants',
    required: { full_name: 'Ada' },
    defaults: { email: null, phone: null, status: 'active', tags: [], external_id: null },
    creations: [
      {},
      { email: null, phone: null, external_id: null },
      { status: 'inactive' },
      { status: 'archived' },
      { tags: ['vip', 'alumni', 'VIP', '%_\\', '日本語'] },
      { phone: 'ask at the desk' },
      { external_id: ' "crm",\t1815 ' },
      longest,
    ],
    before: {
      email: 'ada@example.com',
      phone: '+44',
      status: 'inactive',
      tags: ['vip', 'alumni'],
      external_id: 'crm-1815',
    },
    changes: [
      { full_name: 'Augusta Ada King' },
      { email: 'countess@example.com' },
      { email: 'ADA@example.com' },
      { email: null },
      { phone: '+44 20 7946 0000' },
      { phone: null },
      { status: 'active' },
      { status: 'archived' },
      { tags: ['alumni', 'vip'] },
      { tags: [] },
      { external_id: 'CRM-1815' },
      { external_id: null },
      longest,
    ],
  },
  {
    name: 'Task',
    path: '/tasks',
    required: { title: 'A task' },
    defaults: {
      description: '',
      status: 'open',
      participant_id: null,
      due_at: null,
      completed_at: null,
    },
    creations: [
      {},
      { participant_id: null, due_at: null },
      { status: 'in_progress' },
      { due_at: '2028-02-29T00:00:00.000Z' },
      { external_id: ' "crm",\t1815 ' },
      { title: 'ä'.repeat(200), description: `${'\n'.repeat(9_999)}.` },
    ],
    before: { description: 'Some', due_at: '2026-03-09T17:00:00.000Z' },
    changes: [
      { title: 'Another' },
      { description: 'More' },
      { description: '' },
      { status: 'in_progress' },
      { status: 'cancelled' },
      { due_at: '2027-01-01T00:00:00.000Z' },
      { due_at: null },
      { external_id: 'ä'.repeat(200) },
      { title: 'All', description: 'at once', status: 'in_progress', due_at: null },
    ],
  },
  {
    name: 'Job',
    path: '/jobs',
    required: { title: 'A job' },
    defaults: { description: '', status: 'draft', screening_questions: [] },
    creations: [
      {},
      { status: 'open' },
      { external_id: 'ä'.repeat(200) },
      { title: 'ä'.repeat(200), description: '"'.repeat(10_000) },
      questions({
        key: `_${'k.-'.repeat(21)}`,
        label: '?'.repeat(500),
        requirement: 'nice_to_have',
        expected: 'é'.repeat(2_000),
      }),
      questions({ expected: '' }),
      questions({ expected: -0.5 }),
      questions({ expected: 1.7976931348623157e308 }),
      questions({ expected: false }),
      questions({ key: '__proto__' }, { key: 'constructor' }, { key: 'toString' }),
    ],
    before: { description: 'Some', ...questions({}) },
    changes: [
      { title: 'Another' },
      { description: '' },
      { status: 'open' },
      { status: 'closed' },
      { external_id: 'crm-1815' },
      { screening_questions: [] },
      questions({ requirement: 'nice_to_have' }),
      questions({ expected: 'true' }),
      questions({ key: 'years', expected: 5 }, {}),
      {
        title: 'All',
        description: 'at once',
        status: 'closed',
        ...questions({ key: 'a' }, { key: 'b' }),
      },
    ],
  },
]

/** Rows for `test.each`. `json` is the start of the JSON of the fields, for the title. */
const withTitle = (rows: object[]) =>
  rows.map((fields) => ({ fields, json: JSON.stringify(fields).slice(0, 60) }))

describe.each(kinds)('$name', ({ name, path, required, defaults, creations, before, changes }) => {
  test.each(withTitle(creations))(
    `create${name}: $json → stored, with defaults for the other fields`,
    async ({ fields }) => {
      const client = await app.newClient()
      const answer = await client.post(path, { ...required, ...fields })
      expect(answer).toMatchObject({ status: 201 })
      const { id, created_at } = answer.body
      const stored = { id, ...required, ...defaults, ...fields, created_at, updated_at: created_at }
      expect(answer.body).toEqual(withNulls(name, stored))
      await expectRead(client, `${path}/${id}`, answer)
    },
  )

  test.each(withTitle(changes))(
    `update${name}: $json → stored with a new version, the other fields unchanged`,
    async ({ fields }) => {
      const client = await app.newClient()
      const { id } = await expectSuccess(client.post(path, { ...required, ...before }))
      await expectUpdate(client, `${path}/${id}`, fields)
    },
  )
})

test('createJob: a number beyond the range of a double → 422', async () => {
  const body =
    '{"title":"J","screening_questions":[{"key":"k","label":"L","requirement":"must_have","expected":1e999}]}'
  const answer = await (await app.newClient()).post('/jobs', body)
  expect([answer.status, Object.keys(answer.body.errors)]).toEqual([
    422,
    ['screening_questions.0.expected'],
  ])
})
