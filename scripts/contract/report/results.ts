/** The results of a run in the form that `muster lint` and `muster diff` share, for annotations and
 *  Markdown. */
import type { Contract } from '../../model/contract.ts'
import { lineOf } from '../../model/source.ts'
import type { Result } from '../../report/result.ts'
import { describeMissing, isMissing } from '../coverage.ts'
import { describeRefusal } from '../refusals.ts'
import { describeUnused, type Report } from './report.ts'

/** What failed or was not tested, and the rules that the schemas do not express. A result about an
 *  operation has the line of that operation. */
export function listResults(
  contract: Contract,
  { error, dredd, cases, cells, untested, unused, refusals }: Report,
): Result[] {
  const toResult = (
    level: Result['level'],
    subject: string,
    [rule, message]: [string, string],
  ): Result => {
    const operation = contract.operations.find(({ id }) => id === subject)
    const line = operation ? lineOf(operation.place) : null
    const text = `${subject}: ${message}`
    return { level, rule, message: text, file: operation ? 'openapi.yaml' : null, line }
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
      .map((cell) => toResult('error', cell.operation, ['coverage', describeMissing(cell)])),
    ...untested.map(({ operation, reason }) =>
      toResult('notice', operation, ['not-tested', `was not tested: ${reason}`]),
    ),
    ...unused.map((oracle) =>
      toResult('notice', 'Checks', ['not-tested', `${oracle.name}: ${describeUnused(oracle)}`]),
    ),
    ...refusals.map((refusal) =>
      toResult('notice', refusal.operation, ['refusal', describeRefusal(refusal)]),
    ),
  ]
}
