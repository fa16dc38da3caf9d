import { expect, it } from 'vitest'
import { junitXml } from '../../scripts/report/junit.ts'

it('JUnit XML: escapes markup, and leaves out the characters that XML does not allow', () => {
  const failure = { type: 'a "type"', message: 'tab\t\0\u001f\ufffe\uffff', details: '<\ud800> 😀' }
  const report = junitXml('a & b', [{ classname: 'c', name: 'n', failures: [failure] }])
  expect(report).toContain('<testsuite name="a &amp; b"')
  expect(report).toContain(
    '<failure type="a &quot;type&quot;" message="tab\t">&lt;&gt; 😀</failure>',
  )
})
