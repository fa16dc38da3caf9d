import type { Contract } from '../model/contract.ts'
import { lineOf } from '../model/source.ts'
import type { Result } from '../report/result.ts'
import { isMissing } from './coverage.ts'
import type { Report } from './report.ts'

/** What failed, at the line of the operation, and the rules beside the schemas. */
export function listResults(
  contract: Contract,
  { error, dredd, cases, cells, untested, refusals }: Report,
): Result[] {
  const toResult = (
    level: Result['level'],
    operation: string,
    [rule, message]: [string, string],
  ): Result => {
    const found = contract.operations.find(({ id }) => id === operation)
    const line = found ? lineOf(found.place) : null
    const text = `${operation}: ${message}`
    return { level, rule, message: text, file: found ? 'openapi.yaml' : null, line }
  }
  return [
    ...(error === null ? [] : [toResult('error', 'Run', ['ended-early', error])]),
    ...(dredd?.failures ?? []).map((failure) => toResult('error', 'Dredd', ['dredd', failure])),
    ...cases.flatMap(({ operation, name, failures }) =>
      failures.map(({ check, what, message }) =>
        toResult('error', operation, [check, `${name}: ${what}: ${message}`]),
      ),
    ),
    ...cells
      .filter(isMissing)
      .map(({ operation, kind, name }) =>
        toResult('error', operation, [
          'coverage',
          `the ${kind} ${name} is documented, but never occurred`,
        ]),
      ),
    ...untested.map(({ operation, reason }) =>
      toResult('notice', operation, ['not-tested', `was not tested: ${reason}`]),
    ),
    ...refusals.map(({ operation, field, message, count }) =>
      toResult('notice', operation, [
        'refusal',
        `a rule beside the schema refused ${field} ${count} times: ${message}`,
      ]),
    ),
  ]
}
