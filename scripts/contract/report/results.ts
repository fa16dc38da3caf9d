/** The results of a run as test cases, and those of them that users must see as results. */
import type { Contract } from '../../model/contract.ts'
import { lineOf } from '../../model/source.ts'
import type { TestCase } from '../../report/junit.ts'
import type { Result } from '../../report/result.ts'
import { describeMissing, isExcused, isMissing } from '../coverage/coverage.ts'
import { describeRefusal } from '../coverage/refusals.ts'
import { describeUnused, type Report } from './report.ts'

/** One test case for each oracle of each operation, for each documented status and event, and for
 *  each other promise that was not tested, but must be. More test cases for what was not tested, for
 *  failures of Dredd, and for a run that ended early. */
export function listTestCases(report: Report): TestCase[] {
  const { error, dredd, cases, cells, untested, unused } = report
  const shown = cells.filter(
    (cell) => cell.kind === 'status' || cell.kind === 'event' || isMissing(cell),
  )
  const failed = (classname: string, name: string, type: string, message: string): TestCase => ({
    classname,
    name,
    failures: [{ type, message }],
  })
  return [
    ...(error === null ? [] : [failed('Run', 'ends early', 'ended-early', error)]),
    ...(dredd?.failures ?? []).map((failure) => failed('Dredd', failure, 'dredd', failure)),
    ...cases.map(({ operation, name, durationMs, failures }) => ({
      classname: operation,
      name,
      seconds: durationMs / 1000,
      failures: failures.map(({ check, what, message, curl }) => ({
        type: check,
        message: `${name}: ${what}: ${message}`,
        details: curl,
      })),
    })),
    ...shown.map((cell) => ({
      classname: cell.operation,
      name: `${cell.kind} ${cell.name} was seen`,
      failures: isMissing(cell) ? [{ type: 'coverage', message: describeMissing(cell) }] : [],
      skipped: isExcused(cell) ? (cell.reason ?? '') : undefined,
    })),
    ...untested.map(({ operation, reason }) => ({
      classname: operation,
      name: 'is tested',
      skipped: reason,
    })),
    ...unused.map((oracle) => ({
      classname: 'Checks',
      name: oracle.name,
      skipped: `${oracle.name}: ${describeUnused(oracle)}`,
    })),
  ]
}

/** What failed or was not tested, and the rules that the schemas do not express. A result about an
 *  operation has the line of that operation. */
export function listResults(contract: Contract, report: Report): Result[] {
  const toResult = (
    subject: string,
    result: Pick<Result, 'level' | 'rule' | 'message' | 'details'>,
  ): Result => {
    const operation = contract.operations.find(({ id }) => id === subject)
    const place = operation
      ? { file: 'openapi.yaml', line: lineOf(operation.place) }
      : { file: null, line: null }
    return { ...result, message: `${subject}: ${result.message}`, ...place }
  }
  const cases = listTestCases({ ...report, cells: report.cells.filter(isMissing) })
  return [
    ...cases.flatMap(({ classname, failures = [], skipped }) => [
      ...failures.map(({ type: rule = '', message, details }) =>
        toResult(classname, { level: 'error', rule, message, details }),
      ),
      ...(skipped === undefined
        ? []
        : [toResult(classname, { level: 'notice', rule: 'not-tested', message: skipped })]),
    ]),
    ...report.refusals.map((refusal) =>
      toResult(refusal.operation, {
        level: 'notice',
        rule: 'refusal',
        message: describeRefusal(refusal),
      }),
    ),
  ]
}
