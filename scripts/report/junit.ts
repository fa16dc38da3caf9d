import { formatPlace, type Result } from './result.ts'

export interface TestCase {
  classname: string
  name: string
  seconds?: number
  failures?: { type?: string; message: string; details?: string }[]
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

function testCase({ classname, name, seconds = 0, failures = [], skipped }: TestCase): string {
  const elements = failures.map(({ type, message, details = '' }) => {
    const attributes = `${type === undefined ? '' : `type="${escaped(type)}" `}message="${escaped(message)}"`
    return `<failure ${attributes}>${escaped(details)}</failure>`
  })
  if (skipped !== undefined) elements.push(`<skipped message="${escaped(skipped)}"></skipped>`)
  const attributes = `classname="${escaped(classname)}" name="${escaped(name)}" time="${seconds.toFixed(3)}"`
  return `    <testcase ${attributes}>${elements.join('')}</testcase>\n`
}

/** One test case for each result, which fails if the result is an error. Without results, one test
 *  case that passes. */
export function resultsJunit(name: string, results: Result[]): string {
  const cases = results.map((result): TestCase => {
    const { level, rule, message, file } = result
    const details = formatPlace(result)
    const failures = level === 'error' ? [{ type: rule, message, details }] : []
    return { classname: file ?? 'contract', name: `${rule}: ${message}`, failures }
  })
  return junitXml(name, cases.length > 0 ? cases : [{ classname: 'contract', name: 'no findings' }])
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove.
const NOT_IN_XML = /[\0-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu

/** Escapes a text for XML or HTML. Removes the characters that XML 1.0 §2.2 does not allow: control
 *  characters except tab and line ends, U+FFFE, U+FFFF, and surrogates without a partner. */
export function escaped(text: string): string {
  return text.replace(NOT_IN_XML, '').replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
}
