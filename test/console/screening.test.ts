/** Screening questions in the forms of jobs and job applications. */
import { expect, it } from 'vitest'
import { type Body, newJob, newParticipant } from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { fieldErrors, mainForm, mainText, submitForm, type Values, withValues } from './forms.ts'
import { newOwner } from './record-forms.ts'

const app = sharedApp()

const NEW = '/records/jobs/new'

/** The texts that a user types for a question, at the place of the group. */
function typed(index: number, given: Values): Values {
  const texts = { key: `q${index}`, label: 'A question', requirement: 'must_have', ...given }
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [`screening_questions.${index}.${name}`, text]),
  )
}

interface Case {
  given: Values
  want: Body
}
const CASES: Case[] = [
  { given: { expected: 'x' }, want: ['equals', 'x'] },
  { given: { operator: 'equals', 'expected:kind': 'number', expected: '5' }, want: ['equals', 5] },
  { given: { operator: 'equals', 'expected:kind': 'false' }, want: ['equals', false] },
  // Without JavaScript, the form still has the kind of the operator before.
  { given: { operator: 'at_least', expected: '2.5' }, want: ['at_least', 2.5] },
  {
    given: { operator: 'at_most', 'expected:kind': 'number', expected: '0' },
    want: ['at_most', 0],
  },
  { given: { operator: 'one_of', expected: 'a\r\n5\r\n\r\nb' }, want: ['one_of', ['a', '5', 'b']] },
  {
    given: { operator: 'one_of', 'expected:kind': 'number', expected: '5\r\n -1 \r\n2.5' },
    want: ['one_of', [5, -1, 2.5]],
  },
  { given: { operator: 'one_of', expected: 'a' }, want: ['one_of', ['a']] },
]

it.each(CASES)('creates a question from $given', async ({ given, want }) => {
  const { client, visits } = await newOwner(app)
  const answer = await submitForm(visits, NEW, { title: 'J', ...typed(0, given) })
  expect([answer.status, fieldErrors(answer.text)]).toEqual([303, {}])
  const [job] = (await client.get('/jobs')).body.data
  const [operator, expected] = want
  expect(job.screening_questions).toMatchObject([{ key: 'q0', operator, expected }])
  const edit = await submitForm(visits, `/records/jobs/${job.id}/edit`, {})
  expect(edit.status).toBe(303)
  expect((await client.get(`/jobs/${job.id}`)).body).toEqual(job)
})

const FAULTS: { given: Values; error: string }[] = [
  { given: { operator: 'at_least', expected: 'five' }, error: 'Expected must be a number.' },
  { given: { operator: 'at_most', expected: '' }, error: 'Expected is required.' },
  { given: { operator: 'one_of', expected: '\r\n' }, error: 'Expected is required.' },
  {
    given: { operator: 'one_of', 'expected:kind': 'number', expected: '5\r\nsix' },
    error: 'Expected must be one number per line.',
  },
  {
    given: { operator: 'one_of', expected: `a\r\n${'x'.repeat(2_001)}` },
    error: 'Expected, line 2 must have at most 2000 characters.',
  },
]
it.each(FAULTS)('$error', async ({ given, error }) => {
  const { client, visits } = await newOwner(app)
  const answer = await submitForm(visits, NEW, { title: 'J', ...typed(0, given) })
  expect([answer.status, fieldErrors(answer.text)]).toEqual([
    422,
    { 'screening_questions-0-expected': error },
  ])
  expect(withValues(mainForm(answer.text), {})).toMatchObject({
    'screening_questions.0.operator': given.operator,
    'screening_questions.0.expected': given.expected,
  })
  expect((await client.get('/jobs')).body.meta.total).toBe(0)
})

it('shows the inputs of the selected operator, and the type of the typed value stays', async () => {
  const { visits } = await newOwner(app)
  const at = (name: string): string => `screening_questions.0.${name}`
  let page = await visits.get(NEW)
  const select = async (operator: string, values: Values = {}) => {
    const sent = { ...values, [at('operator')]: operator, 'ask:refresh': '1' }
    page = await visits.post(NEW, withValues(mainForm(page.text), sent))
    expect(page.status).toBe(200)
    return withValues(mainForm(page.text), {})
  }
  expect(withValues(mainForm(page.text), {})).toMatchObject({
    [at('operator')]: 'equals',
    [at('expected:kind')]: 'text',
  })
  expect(await select('at_least', { [at('expected')]: '5' })).toMatchObject({
    [at('expected')]: '5',
    [at('expected:kind')]: 'number',
  })
  expect(mainText(page.text)).toContain(
    'Expected The answer is the expected number or a greater one.',
  )
  expect(page.text).not.toContain('Kind of Expected')
  expect(await select('one_of')).toMatchObject({
    [at('expected')]: '5',
    [at('expected:kind')]: 'number',
  })
  expect(mainText(page.text)).toContain('One per line.')
})

it('shows the operator and the expected values on the page of the job', async () => {
  const { client, visits } = await newOwner(app)
  const question = (key: string, operator: string, expected: unknown): object => ({
    ...{ key, label: `${key}?`, requirement: 'must_have', operator, expected },
  })
  const { id } = await newJob(client, {
    screening_questions: [
      question('years', 'at_least', 5),
      question('city', 'one_of', ['Lyon', 'Paris']),
    ],
  })
  expect(mainText((await visits.get(`/records/jobs/${id}`)).text)).toMatch(
    /years years\? Must have At least 5 city city\? Must have One of Lyon Paris/,
  )
})

it('asks for answers of the type of the expected values', async () => {
  const { client, visits } = await newOwner(app)
  const question = (key: string, operator: string, expected: unknown): object => ({
    ...{ key, label: key, requirement: 'nice_to_have', operator, expected },
  })
  const job = await newJob(client, {
    screening_questions: [
      question('years', 'at_least', 5),
      question('city', 'one_of', ['Lyon', 'Paris']),
      question('grade', 'one_of', [1, 2]),
      question('mixed', 'one_of', ['1', 1]),
    ],
  })
  const { id: participant_id } = await newParticipant(client)
  const path = `/records/job-applications/new?job_id=${job.id}`
  expect(mainText((await visits.get(path)).text)).toContain('years optional Nice to have. city')
  const wrong = await submitForm(visits, path, { participant_id, 'answers.grade': 'first' })
  expect(fieldErrors(wrong.text)).toEqual({ 'answers-grade': 'grade must be a number.' })
  const saved = await submitForm(visits, path, {
    participant_id,
    'answers.years': '7',
    'answers.city': 'Lyon',
    'answers.grade': '2',
    'answers.mixed:kind': 'number',
    'answers.mixed': '1',
  })
  expect(saved.status).toBe(303)
  expect((await client.get('/job-applications')).body.data).toMatchObject([
    {
      answers: { years: 7, city: 'Lyon', grade: 2, mixed: 1 },
      screening_outcome: 'meets_all',
    },
  ])
})
