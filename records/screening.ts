/** The policy of screening: what each operator expects, and which outcome the answers have. Nothing is
 *  converted: "5" is not 5. */
import { type FieldErrors, InvalidInput } from '../errors.ts'
import type { components } from '../generated/openapi.ts'

export type ScreeningQuestion = components['schemas']['ScreeningQuestion']
export type ScreeningQuestionInput = components['schemas']['ScreeningQuestionInput']
export type ScreeningOutcome = components['schemas']['ScreeningOutcome']
export type ScreeningOperator = components['schemas']['ScreeningOperator']
export type Answers = components['schemas']['Answers']
type Expectation = ScreeningQuestion['expected']

/** The JSON types of the expected value. */
export const EXPECTED_TYPES: Record<ScreeningOperator, readonly string[]> = {
  equals: ['string', 'number', 'boolean'],
  at_least: ['number'],
  at_most: ['number'],
  one_of: ['array'],
}

const TYPE_ERRORS: Record<ScreeningOperator, string> = {
  equals: 'must be one value if the operator is equals. Use the operator one_of for a list.',
  at_least: 'must be a number if the operator is at_least.',
  at_most: 'must be a number if the operator is at_most.',
  one_of: 'must be a list if the operator is one_of.',
}

/** Throws `InvalidInput` for duplicate keys, and for expected values that do not fit their operator. */
export function assertScreeningQuestions(questions: readonly ScreeningQuestionInput[]): void {
  const errors: FieldErrors = {}
  const keys = new Set<string>()
  for (const [index, question] of questions.entries()) {
    const { key, operator, expected } = withOperator(question)
    if (keys.has(key))
      errors[`screening_questions.${index}.key`] = [`is the key of another question: ${key}.`]
    keys.add(key)
    const type = Array.isArray(expected) ? 'array' : typeof expected
    if (!EXPECTED_TYPES[operator].includes(type))
      errors[`screening_questions.${index}.expected`] = [TYPE_ERRORS[operator]]
  }
  if (Object.keys(errors).length > 0) throw new InvalidInput(errors)
}

/** The question with its operator, in the order of the contract. */
export function withOperator(question: ScreeningQuestionInput): ScreeningQuestion {
  const { key, label, requirement, operator = 'equals', expected } = question
  return { key, label, requirement, operator, expected }
}

/** The outcome of an application when it is created. Null if there are no questions. */
export function screen(
  questions: readonly ScreeningQuestion[],
  answers: Answers,
): ScreeningOutcome {
  if (questions.length === 0) return null
  const missed = questions.filter(
    ({ key, operator, expected }) =>
      !Object.hasOwn(answers, key) || !isMet(answers[key], operator, expected),
  )
  if (missed.some(({ requirement }) => requirement === 'must_have')) return 'missing_must_have'
  return missed.length > 0 ? 'missing_nice_to_have' : 'meets_all'
}

function isMet(
  answer: Answers[string] | undefined,
  operator: ScreeningOperator,
  expected: Expectation,
): boolean {
  const areNumbers = typeof answer === 'number' && typeof expected === 'number'
  switch (operator) {
    case 'equals':
      return answer === expected
    case 'at_least':
      return areNumbers && answer >= expected
    case 'at_most':
      return areNumbers && answer <= expected
    case 'one_of':
      return Array.isArray(expected) && expected.some((one) => one === answer)
  }
}
