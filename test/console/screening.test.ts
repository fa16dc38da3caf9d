/** Screening questions in the forms of jobs and job applications. */
import { expect, it } from 'vitest'
import { newJob, newParticipant } from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { fieldErrors, mainForm, mainText, submitForm, type Values, withValues } from './forms.ts'
import { createByForm, newOwner } from './record-forms.ts'

const app = sharedApp()

const NEW_JOB = '/records/jobs/new'

/** The field of the form for a part of the first question. */
const fieldName = (name: string): string => `screening_questions.0.${name}`

/** The input for the first question of a job: `values`, and valid values for the other parts. */
function questionInput(values: Values): Values {
  const texts = { key: 'q0', label: 'A question', requirement: 'must_have', ...values }
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [fieldName(name), text]))
}

const QUESTIONS: { input: Values; operator: string; expected: unknown }[] = [
  { input: { expected: 'x' }, operator: 'equals', expected: 'x' },
  {
    input: { operator: 'equals', 'expected:kind': 'number', expected: '5' },
    operator: 'equals',
    expected: 5,
  },
  {
    input: { operator: 'equals', 'expected:kind': 'false' },
    operator: 'equals',
    expected: false,
  },
  // Without JavaScript, the form still sends the kind of value of the previous operator.
  { input: { operator: 'at_least', expected: '2.5' }, operator: 'at_least', expected: 2.5 },
  {
    input: { operator: 'at_most', 'expected:kind': 'number', expected: '0' },
    operator: 'at_most',
    expected: 0,
  },
  {
    input: { operator: 'one_of', expected: 'a\r\n5\r\n\r\nb' },
    operator: 'one_of',
    expected: ['a', '5', 'b'],
  },
  {
    input: { operator: 'one_of', 'expected:kind': 'number', expected: '5\r\n -1 \r\n2.5' },
    operator: 'one_of',
    expected: [5, -1, 2.5],
  },
  { input: { operator: 'one_of', expected: 'a' }, operator: 'one_of', expected: ['a'] },
]

it.each(QUESTIONS)(
  'the input $input creates a question that expects $operator $expected',
  async ({ input, operator, expected }) => {
    const { client, visits } = await newOwner(app)
    const answer = await submitForm(visits, NEW_JOB, { title: 'J', ...questionInput(input) })
    expect([answer.status, fieldErrors(answer.text)]).toEqual([303, {}])
    const [job] = (await client.get('/jobs')).body.data
    expect(job.screening_questions).toMatchObject([{ key: 'q0', operator, expected }])
    const edit = await submitForm(visits, `/records/jobs/${job.id}/edit`, {})
    expect(edit.status).toBe(303)
    expect((await client.get(`/jobs/${job.id}`)).body).toEqual(job)
  },
)

const INVALID: { input: Values; error: string }[] = [
  { input: { operator: 'at_least', expected: 'five' }, error: 'Expected answer must be a number.' },
  {
    input: { operator: 'equals', expected: '' },
    error: 'Expected answer is empty. Enter it, or choose Yes or No.',
  },
  { input: { operator: 'at_most', expected: '' }, error: 'Expected answer is required.' },
  { input: { operator: 'one_of', expected: '\r\n' }, error: 'Expected answer is required.' },
  {
    input: { operator: 'one_of', 'expected:kind': 'number', expected: '5\r\nsix' },
    error: 'Expected answer must be one number per line.',
  },
  {
    input: { operator: 'one_of', expected: `a\r\n${'x'.repeat(2_001)}` },
    error: 'Expected answer, line 2 must have at most 2000 characters.',
  },
]
it.each(INVALID)('$input.operator with an invalid value: 422, $error', async ({ input, error }) => {
  const { client, visits } = await newOwner(app)
  const answer = await submitForm(visits, NEW_JOB, { title: 'J', ...questionInput(input) })
  expect([answer.status, fieldErrors(answer.text)]).toEqual([
    422,
    { 'screening_questions-0-expected': error },
  ])
  expect(withValues(mainForm(answer.text), {})).toMatchObject({
    [fieldName('operator')]: input.operator,
    [fieldName('expected')]: input.expected,
  })
  expect((await client.get('/jobs')).body.meta.total).toBe(0)
})

it('another operator: the form shows its inputs, and keeps the value and its type', async () => {
  const { visits } = await newOwner(app)
  let page = await visits.get(NEW_JOB)
  const select = async (operator: string, values: Values = {}) => {
    const input = { ...values, [fieldName('operator')]: operator, 'ask:refresh': '1' }
    page = await visits.post(NEW_JOB, withValues(mainForm(page.text), input))
    expect(page.status).toBe(200)
    return withValues(mainForm(page.text), {})
  }
  expect(withValues(mainForm(page.text), {})).toMatchObject({
    [fieldName('operator')]: 'equals',
    [fieldName('expected:kind')]: 'text',
  })
  expect(page.text).toContain('Kind of Expected answer')
  expect(await select('at_least', { [fieldName('expected')]: '5' })).toMatchObject({
    [fieldName('expected')]: '5',
    [fieldName('expected:kind')]: 'number',
  })
  expect(page.text).not.toContain('Kind of Expected')
  expect(await select('one_of')).toMatchObject({
    [fieldName('expected')]: '5',
    [fieldName('expected:kind')]: 'number',
  })
  expect(mainText(page.text)).toContain('One per line.')
})

it('shows the operator and the expected values on the page of the job', async () => {
  const { client, visits } = await newOwner(app)
  const question = (key: string, operator: string, expected: unknown): object => ({
    key,
    label: `${key}?`,
    requirement: 'must_have',
    operator,
    expected,
  })
  const { id } = await newJob(client, {
    screening_questions: [
      question('years', 'at_least', 5),
      question('city', 'one_of', ['Lyon', 'Paris']),
    ],
  })
  expect(mainText((await visits.get(`/records/jobs/${id}`)).text)).toMatch(
    /years\? Must have At least 5 years city\? Must have One of Lyon Paris city/,
  )
})

it('a question without a key gets one from its words, which no other question has', async () => {
  const { client, visits } = await newOwner(app)
  const labels = ['Sprichst du Türkisch?', 'Sprichst du Türkisch…', '¿年?', 'x'.repeat(500)]
  const questions = labels.flatMap((label, index) => [
    [`screening_questions.${index}.label`, label],
    [`screening_questions.${index}.requirement`, 'must_have'],
    [`screening_questions.${index}.operator`, 'equals'],
    [`screening_questions.${index}.expected:kind`, 'true'],
  ])
  const path = await createByForm(visits, NEW_JOB, {
    title: 'Driver',
    'screening_questions.0.key': 'question',
    ...Object.fromEntries(questions),
  })
  const { screening_questions: stored } = (await client.get(`/jobs/${path}`)).body
  expect(stored.map(({ key }: { key: string }) => key)).toEqual([
    'question',
    'sprichst_du_turkisch',
    'question_2',
    'x'.repeat(60),
  ])
})

it('asks for answers of the type of the expected values', async () => {
  const { client, visits } = await newOwner(app)
  const question = (key: string, operator: string, expected: unknown): object => ({
    key,
    label: key,
    requirement: 'nice_to_have',
    operator,
    expected,
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
  expect(mainText((await visits.get(path)).text)).toContain('years Nice to have city')
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
