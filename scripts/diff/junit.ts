/** JUnit's XML, as the pipelines read it: a case for each change, failed if it breaks somebody. */
import type { Difference } from '../diff.ts'

export function junit({ from, to, changes }: Difference): string {
  const cases = changes.map(({ id, level, file, line, concerns, part, what }) => {
    const name = escaped(`${id}: ${concerns.join(', ')}: ${part} ${what}.`)
    const failure = level === 'breaking' ? `<failure message="${name}">${escaped(`${file}:${line}`)}</failure>` : ''
    return `    <testcase classname="${escaped(file)}" name="${name}">${failure}</testcase>\n`
  })
  const all = cases.length > 0 ? cases : ['    <testcase classname="contract" name="nothing has changed"></testcase>\n']
  const failures = changes.filter(({ level }) => level === 'breaking').length
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="muster diff ${escaped(from)} ${escaped(to)}" tests="${all.length}" failures="${failures}">
${all.join('')}  </testsuite>
</testsuites>
`
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** XML 1.0 §2.2 allows no control characters but tab and line ends. */
export function escaped(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must go.
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '').replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
}
