/** Results as GitHub annotations, Markdown and HTML. */
import { escaped } from './junit.ts'
import { formatPlace, type Result } from './result.ts'

/** Workflow commands of GitHub Actions, for example
 *  `::error file=openapi.yaml,line=66,title=lists::…`. GitHub shows each result at its line. */
export function toAnnotations(results: Result[]): string[] {
  return results.map(({ level, rule, message, file, line }) => {
    const properties = { file, line, title: rule }
    const list = Object.entries(properties)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => `${name}=${escapeProperty(String(value))}`)
    return `::${level} ${list.join()}::${escapeData(message)}`
  })
}

function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

/** A heading and a table, for example for a comment on a pull request. */
export function toMarkdown(title: string, results: Result[]): string {
  const escapeCell = (text: string): string =>
    text.replace(/[\\|<]/g, '\\$&').replace(/\s*\n\s*/g, ' ')
  const lines = [`## ${title}`, '', countByLevel(results)]
  if (results.length > 0)
    lines.push('', '| level | place | rule | result |', '| --- | --- | --- | --- |')
  for (const result of results) lines.push(`| ${cellsOf(result).map(escapeCell).join(' | ')} |`)
  return `${lines.join('\n')}\n`
}

/** An HTML file that loads no other file. `section` is the HTML above the results. */
export function toPage(title: string, results: Result[], section = ''): string {
  const rows = results.map((result) => {
    const { level, details = '' } = result
    const cells = cellsOf(result).map((text) => `<td>${escaped(text)}</td>`)
    const below = details && `<tr><td colspan="4"><pre>${escaped(details)}</pre></td></tr>`
    return `<tr class="${level}">${cells.join('')}</tr>${below}`
  })
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem }
table { border-collapse: collapse }
pre { overflow-x: auto; margin: 0; max-width: 75rem }
th, td { border: 1px solid #8886; padding: .2rem .5rem; text-align: left; vertical-align: top }
.error td:first-child { background: #d335 }
.warning td:first-child { background: #da35 }
</style>
<h1>${escaped(title)}</h1>
${section}
<p>${countByLevel(results)}</p>
<table>
<tr><th>level</th><th>place</th><th>rule</th><th>result</th></tr>
${rows.join('\n')}
</table>
</html>
`
}

function cellsOf(result: Result): string[] {
  return [result.level, formatPlace(result), result.rule, result.message]
}

/** For example `2 errors, 1 warning, 0 notices.` */
function countByLevel(results: Result[]): string {
  const counts = (['error', 'warning', 'notice'] as const).map((level) => {
    const count = results.filter((result) => result.level === level).length
    return `${count} ${level}${count === 1 ? '' : 's'}`
  })
  return `${counts.join(', ')}.`
}
