/** The results of a run as test cases, and those of them that users must see as results. */
import type { Contract } from '../../model/contract.ts'
import { lineOf } from '../../model/source.ts'
import type { TestCase } from '../../report/junit.ts'
import type { Result } from '../../report/result.ts'
import { describeMissing, isExcused, isMissing } from '../coverage.ts'
import { describeRefusal } from '../refusals.ts'
import { describeUnused, type Report } from './report.ts'

/** One test case for each oracle of each operation, and for each cell: a documented status, event
 *  or optional field. More test cases for what was not tested, for failures of Dredd, and for a run
 *  that ended early. */
export function listTestCases(report: Report): TestCase[] {
  const { error, dredd, cases, cells, untested, unused } = report
  const failed = (classname: string, name: string, type: string, message: string): TestCase => ({
    classname,
    name,
    failures: [{ type, message }],
  })
  return [
    ...(error === null ? [] : [failed('Run', 'ends early', 'ended-early', error)]),
    ...(dredd?.failures ?? []).map((failure) => failed('Dredd', failure, 'dredd', failure)),
    ...untested.map(({ operation, reason }) => ({
      classname: operation,
      name: 'is tested',
      skipped: reason,
    })),
    ...unused.map((oracle) => ({
      classname: 'Checks',
      name: oracle.name,
      skipped: describeUnused(oracle),
    })),
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
    ...cells.map((cell) => ({
      classname: cell.operation,
      name: `${cell.kind} ${cell.name} was seen`,
      failures: isMissing(cell) ? [{ type: 'coverage', message: describeMissing(cell) }] : [],
      skipped: isExcused(cell) ? (cell.reason ?? '') : undefined,
    })),
  ]
}

/** What failed or was not tested, and the rules that the schemas do not express. A result about an
 *  operation has the line of that operation. */
export function listResults(contract: Contract, report: Report): Result[] {
  const { untested, unused, refusals } = report
  const toResult = (
    level: Result['level'],
    subject: string,
    rule: string,
    message: string,
  ): Result => {
    const operation = contract.operations.find(({ id }) => id === subject)
    const place = operation
      ? { file: 'openapi.yaml', line: lineOf(operation.place) }
      : { file: null, line: null }
    return { level, rule, message: `${subject}: ${message}`, ...place }
  }
  return [
    ...listTestCases(report).flatMap(({ classname, failures = [] }) =>
      failures.map(({ type = '', message }) => toResult('error', classname, type, message)),
    ),
    ...untested.map(({ operation, reason }) =>
      toResult('notice', operation, 'not-tested', `was not tested: ${reason}`),
    ),
    ...unused.map((oracle) =>
      toResult('notice', 'Checks', 'not-tested', `${oracle.name}: ${describeUnused(oracle)}`),
    ),
    ...refusals.map((refusal) =>
      toResult('notice', refusal.operation, 'refusal', describeRefusal(refusal)),
    ),
  ]
}
