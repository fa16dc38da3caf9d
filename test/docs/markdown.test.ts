/** The Markdown of the documentation's pages, and llms.txt. */
import { posix } from 'node:path'
import { expect, it } from 'vitest'
import { operations } from '../../generated/operations.ts'
import { headingIds } from '../../scripts/model/heading-ids.ts'
import { openSite } from '../../web/docs/site.ts'
import { operationIds } from '../helpers.ts'

const site = openSite({ baseUrl: 'https://api.example.com', edition: 'static' })
const texts = new Map([...site.texts].map(([path, text]) => [path, text().bytes.toString()]))

/** The text without blocks of code. */
const prose = (text: string) => text.replace(/^```.*?^```$/gms, '')

function headingsOf(text: string): string[] {
  return [...prose(text).matchAll(/^##+ (.*)$/gm)].map(([, heading = '']) =>
    heading.replaceAll('`', ''),
  )
}

/** Schemas are linked by their exact names. */
function hasHeading(text: string, id: string): boolean {
  const headings = headingsOf(text)
  return headings.includes(id) || headingIds(headings).includes(id)
}

/** Guides with generated sections, whose headings only the page for browsers has. */
const WITH_GENERATED_SECTIONS = ['guides/errors.md', 'guides/lists.md', 'guides/rate-limits.md']

interface Link {
  /** The path of the file with the link. */
  source: string
  /** The path of the file that it leads to. */
  target: string
  fragment?: string
}

/** The relative links of a file. */
function linksOf(source: string, text: string): Link[] {
  const matches = prose(text).matchAll(/\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]*))?\)/g)
  return [...matches].map(([, file = '', fragment]) => ({
    source,
    target: file === '' ? source : posix.join(posix.dirname(source), file),
    fragment,
  }))
}

function isBroken({ target, fragment }: Link): boolean {
  const text = texts.get(target)
  if (text === undefined) return !site.contracts.has(target)
  if (fragment === undefined || WITH_GENERATED_SECTIONS.includes(target)) return false
  return !hasHeading(text, fragment)
}

it('every page has Markdown with a title, and no element or entity of HTML', () => {
  expect([...texts.keys()]).toEqual(['llms.txt', ...site.pages.map((id) => `${id}.md`)])
  for (const [path, text] of texts) {
    expect(text, path).toMatch(/^# \S/)
    const plain = prose(text).replace(/`[^`]*`/g, '')
    expect(plain.match(/<\/?(a|p|ul|li|code|span|strong|time)\b|&#\d+;/g), path).toBeNull()
  }
})

it('every relative link leads to a file of the site, and its fragment to a heading', () => {
  const links = [...texts].flatMap(([path, text]) => linksOf(path, text))
  expect(links.length).toBeGreaterThan(texts.size)
  expect(links.filter(isBroken)).toEqual([])
})

it('llms.txt: a title, a sentence, and sections of links with descriptions', () => {
  const [title, , summary, ...rest] = (texts.get('llms.txt') ?? '').split('\n')
  expect(title).toBe('# Muster API')
  expect(summary).toMatch(/^> \S.*\.$/)
  const lines = rest.filter((line) => line.startsWith('- '))
  expect(lines.length).toBeGreaterThan(site.pages.length / 2)
  for (const line of lines) expect(line).toMatch(/^- \[[^\]]+\]\(\S+\): \S/)
  expect(rest).toContain('## Guides')
  expect(rest).toContain('## Optional')
})

it('an operation: its request, fields, sample and statuses', () => {
  const text = texts.get('operations/createTask.md')
  expect(text).toContain('`POST /public/v1/tasks`')
  expect(text).toContain('- `title` (string; required; 1 to 200 characters; not only white space)')
  expect(text).toContain("curl 'https://api.example.com/public/v1/tasks'")
  expect(text).toContain('[task.created](../events/task.created.md)')
  for (const id of operationIds)
    expect(texts.get(`operations/${id}.md`), id).toContain(`### ${operations[id].success} `)
})

it('a guide: the code that it links to, and the URL of the service', () => {
  const guide = texts.get('guides/webhooks.md')
  expect(guide).toContain('```py\n')
  expect(guide).toContain('webhook-signature')
  for (const id of ['cookbook', 'keep-a-copy']) {
    const text = texts.get(`guides/${id}.md`)
    for (const language of ['ts', 'py', 'go']) expect(text, id).toContain(`\`\`\`${language}\n`)
  }
  expect(texts.get('guides/getting-started.md')).toContain('https://api.example.com/public/v1/me')
})
