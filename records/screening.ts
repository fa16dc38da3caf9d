/** Screening of job applications: compares the answers with what the questions of the job expect.
 *  Values are not converted: "5" is not 5. */
import { type FieldErrors, InvalidInput } from '../errors.ts'
import type { components } from '../generated/openapi.ts'

export type ScreeningQuestion = components['schemas']['ScreeningQuestion']
type ScreeningQuestionInput = components['schemas']['ScreeningQuestionInput']
export type ScreeningOutcome = components['schemas']['ScreeningOutcome']
type Answers = components['schemas']['Answers']

/** Throws `InvalidInput` for duplicate keys. */
export function assertScreeningQuestions(questions: readonly ScreeningQuestionInput[]): void {
  const errors: FieldErrors = {}
  const keys = new Set<string>()
  for (const [index, { key }] of questions.entries()) {
    if (keys.has(key))
      errors[`screening_questions.${index}.key`] = [`is the key of another question: ${key}.`]
    keys.add(key)
  }
  if (Object.keys(errors).length > 0) throw new InvalidInput(errors)
}

/** The question with its operator, by default `equals`. Its fields are in the order of the
 *  contract. */
export function withOperator(question: ScreeningQuestionInput): ScreeningQuestion {
  const { key, label, requirement, expected } = question
  const operator = 'operator' in question ? question.operator : 'equals'
  return { key, label, requirement, operator, expected } as ScreeningQuestion
}

/** The outcome of an application when it is created. Null if there are no questions. */
export function screen(
  questions: readonly ScreeningQuestion[],
  answers: Answers,
): ScreeningOutcome {
  if (questions.length === 0) return null
  const missed = questions.filter(
    (question) => !Object.hasOwn(answers, question.key) || !isMet(question, answers[question.key]),
  )
  if (missed.some(({ requirement }) => requirement === 'must_have')) return 'missing_must_have'
  return missed.length > 0 ? 'missing_nice_to_have' : 'meets_all'
}

function isMet(
  { operator, expected }: ScreeningQuestion,
  answer: Answers[string] | undefined,
): boolean {
  switch (operator) {
    case 'equals':
      return answer === expected
    case 'at_least':
      return typeof answer === 'number' && answer >= expected
    case 'at_most':
      return typeof answer === 'number' && answer <= expected
    case 'one_of':
      return expected.some((one) => one === answer)
  }
}
