/** JUnit XML for CI pipelines. */
import type { Difference } from './diff.ts'

export interface TestCase {
  classname: string
  name: string
  seconds?: number
  failures?: { type?: string; message: string; details: string }[]
  /** The reason for skipping the case. */
  skipped?: string
}

export function junitXml(name: string, cases: TestCase[]): string {
  const failures = cases.filter((one) => one.failures?.length).length
  const skipped = cases.filter((one) => one.skipped !== undefined).length
  const counts = `tests="${cases.length}" failures="${failures}"`
  const skippedCount = skipped === 0 ? '' : ` skipped="${skipped}"`
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="${escaped(name)}" ${counts}${skippedCount}>
${cases.map(testCase).join('')}  </testsuite>
</testsuites>
`
}

function testCase({ classname, name, seconds, failures = [], skipped }: TestCase): string {
  const time = seconds === undefined ? '' : ` time="${seconds.toFixed(3)}"`
  const results = failures.map(({ type, message, details }) => {
    const attributes = `${type === undefined ? '' : `type="${type}" `}message="${escaped(message)}"`
    return `<failure ${attributes}>${escaped(details)}</failure>`
  })
  if (skipped !== undefined) results.push(`<skipped message="${escaped(skipped)}"></skipped>`)
  const attributes = `classname="${escaped(classname)}" name="${escaped(name)}"${time}`
  return `    <testcase ${attributes}>${results.join('')}</testcase>\n`
}

/** One test case for each change of the contract, and for each fault. Breaking changes and faults fail. */
export function junit({ from, to, changes, problems }: Difference): string {
  const cases = changes.map(({ id, level, file, line, concerns, part, what }): TestCase => {
    const name = `${id}: ${concerns.join(', ')}: ${part} ${what}.`
    return {
      classname: file,
      name,
      failures: level === 'breaking' ? [{ message: name, details: `${file}:${line}` }] : [],
    }
  })
  const faults = problems.map(({ file, line, problem }): TestCase => {
    const failures = [{ message: problem, details: `${file}:${line}` }]
    return { classname: file, name: `the contract is consistent: ${problem}`, failures }
  })
  const nothing: TestCase =
    from === null
      ? {
          classname: 'contract',
          name: 'nothing that was released breaks',
          skipped: 'There is no release to compare with.',
        }
      : { classname: 'contract', name: 'nothing has changed' }
  return junitXml(`muster diff ${from ?? 'nothing'} ${to}`, [
    ...(cases.length > 0 ? cases : [nothing]),
    ...faults,
  ])
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove.
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g

/** XML 1.0 §2.2 allows no control characters except tab and line ends. */
export function escaped(text: string): string {
  return text
    .replace(CONTROL_CHARACTERS, '')
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
}
