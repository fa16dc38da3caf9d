/** The results of a run as JUnit XML. */
import { junitXml, type TestCase } from '../../report/junit.ts'
import { isExcused, isMissing } from '../coverage.ts'
import { describeUnused, type Report } from './report.ts'

/** One test case for each oracle of each operation, and for each cell: a documented status, event
 *  or optional field. More test cases for what was not tested, for failures of Dredd, and for a run
 *  that ended early. */
export function contractJunit(report: Report): string {
  const { url, seed, error, dredd, cases, cells, untested, unused } = report
  return junitXml(`muster contract ${url} seed ${seed}`, [
    ...(error === null ? [] : [failedCase('Run', 'ends early', error)]),
    ...(dredd?.failures ?? []).map((failure) => failedCase('Dredd', failure, failure)),
    ...untested.map(
      ({ operation, reason }): TestCase => ({
        classname: operation,
        name: 'is tested',
        seconds: 0,
        skipped: reason,
      }),
    ),
    ...unused.map(
      (oracle): TestCase => ({
        classname: 'Checks',
        name: oracle.name,
        seconds: 0,
        skipped: describeUnused(oracle),
      }),
    ),
    ...cases.map(
      ({ operation, name, durationMs, failures }): TestCase => ({
        classname: operation,
        name,
        seconds: durationMs / 1000,
        failures: failures.map((failure) => ({
          type: failure.check,
          message: `${failure.check}: ${failure.what}: ${failure.message}`,
          details: failure.curl,
        })),
      }),
    ),
    ...cells.map(
      (cell): TestCase => ({
        classname: cell.operation,
        name: `${cell.kind} ${cell.name} was seen`,
        seconds: 0,
        failures: isMissing(cell)
          ? [{ type: 'coverage', message: 'was never seen', details: '' }]
          : [],
        skipped: isExcused(cell) ? (cell.reason ?? '') : undefined,
      }),
    ),
  ])
}

function failedCase(classname: string, name: string, message: string): TestCase {
  return { classname, name, seconds: 0, failures: [{ message, details: '' }] }
}
