/** Groups the failures of a run by their cause, because one fault can fail many checks. */
import { describeMissing, isMissing } from '../coverage/coverage.ts'
import type { Failure } from '../suite.ts'
import type { Report } from './report.ts'

/** Failures that probably have one cause. */
export interface Cause {
  /** What failed first: lines of text. */
  first: string[]
  /** The operation of each failure. */
  operations: string[]
}

/** In the order of their first failures. */
export function listCauses({ dredd, cases, cells }: Report): Cause[] {
  const entries = [
    ...cases.flatMap(({ operation, name, failures }) =>
      failures.map((failure) => ({
        operation,
        key: keyOf(failure),
        first: [
          `${operation} ${name} (${failure.check})`,
          `${failure.what}: ${failure.message}`,
          ...failure.curl.split('\n'),
        ],
      })),
    ),
    ...(dredd?.failures ?? []).map((failure) => {
      const [operation = '', , ...message] = failure.split(': ')
      return { operation, key: generalize(message.join(': ')), first: [failure] }
    }),
    ...cells.filter(isMissing).map((cell) => ({
      operation: cell.operation,
      key: `${cell.kind} ${cell.name}`,
      first: [`${cell.operation}: ${describeMissing(cell)}`],
    })),
  ]
  const groups = Map.groupBy(entries, ({ key }) => key)
  return [...groups.values()].map((group) => ({
    first: group[0]?.first ?? [],
    operations: group.map(({ operation }) => operation),
  }))
}

/** Equal for failures that probably have one cause: the same unexpected error of the service, or
 *  the same message about other values. */
function keyOf({ check, message, exchanges }: Failure): string {
  const { status = 0, text = '' } = exchanges.at(-1)?.response ?? {}
  if (status >= 500) return `${status} ${generalize(text)}`
  const [result = ''] = message.split('. The steps: ')
  return `${check} ${generalize(result)}`
}

/** The text without IDs, numbers and quoted values. */
function generalize(text: string): string {
  return text
    .replace(/[\da-f]{8}-[\da-f-]{27}/g, '#')
    .replace(/"[^"]*"/g, '""')
    .replace(/\d+/g, '#')
}
