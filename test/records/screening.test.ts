import { expect, test } from 'vitest'
import { type ScreeningOutcome, type ScreeningQuestion, screen } from '../../records/screening.ts'

interface Row {
  operator: ScreeningQuestion['operator']
  expected: ScreeningQuestion['expected']
  met: (string | number | boolean)[]
  missed: (string | number | boolean)[]
}

const TABLE: Row[] = [
  { operator: 'equals', expected: 5, met: [5], missed: [4.999, 6, '5', true] },
  { operator: 'equals', expected: 0, met: [0, -0], missed: [false, ''] },
  { operator: 'equals', expected: 'Oui', met: ['Oui'], missed: ['oui', 'Oui ', true] },
  { operator: 'equals', expected: true, met: [true], missed: [false, 'true', 1] },
  { operator: 'at_least', expected: 5, met: [5, 5.001, 1e300], missed: [4.999, -5, '6', true] },
  { operator: 'at_least', expected: -1, met: [-1, -0.5, 0], missed: [-1.5, '0', false, ''] },
  { operator: 'at_most', expected: 5, met: [5, 4.999, -1e300], missed: [5.001, '4', true, false] },
  { operator: 'at_most', expected: 0, met: [0, -0, -1], missed: [0.1, '', '-1', false] },
  { operator: 'one_of', expected: ['a', 'b'], met: ['a', 'b'], missed: ['A', 'c', 'a,b', ''] },
  { operator: 'one_of', expected: [5, '6', true], met: [5, '6', true], missed: ['5', 6, false] },
  { operator: 'one_of', expected: [0], met: [0, -0], missed: ['0', false, ''] },
]
const cases = TABLE.flatMap(({ met, missed, ...question }) => [
  ...met.map((answer) => ({ ...question, answer, isMet: true })),
  ...missed.map((answer) => ({ ...question, answer, isMet: false })),
])

const question = (fields: object): ScreeningQuestion => ({
  key: 'a',
  label: 'A?',
  requirement: 'must_have',
  operator: 'equals',
  expected: true,
  ...fields,
})

test.each(cases)(
  '$operator $expected, answered with $answer: $isMet',
  ({ operator, expected, answer, isMet }) =>
    expect(screen([question({ operator, expected })], { a: answer })).toBe(
      isMet ? 'meets_all' : 'missing_must_have',
    ),
)

test.each(TABLE)('$operator $expected, without an answer: missed', ({ operator, expected }) =>
  expect(screen([question({ operator, expected })], {})).toBe('missing_must_have'),
)

const must = question({ key: 'must' })
const nice = question({ key: 'nice', requirement: 'nice_to_have' })
const outcomes: [questions: ScreeningQuestion[], answers: object, ScreeningOutcome][] = [
  [[], { must: true }, null],
  [[must, nice], { must: true, nice: true }, 'meets_all'],
  [[must, nice], { must: true }, 'missing_nice_to_have'],
  [[must, nice], { nice: true }, 'missing_must_have'],
  [[must, nice], {}, 'missing_must_have'],
  [[nice], {}, 'missing_nice_to_have'],
]
test.each(outcomes)('%j answered with %j: %s', (questions, answers, want) =>
  expect(screen(questions, { ...answers })).toBe(want),
)
