/** Checks that each sentence of the specification has tests, and that these tests exist.
 *
 *  The tables of sentences and tests are in specification/, one file per section. To compare the
 *  quotes with the specification itself:
 *  `SPECIFICATION=service-spec.md npx vitest run --project plain test/specification.test.ts` */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { authentication } from './specification/authentication.ts'
import { beyond } from './specification/beyond.ts'
import { endpoints } from './specification/endpoints.ts'
import { errors } from './specification/errors.ts'
import { events } from './specification/events.ts'
import { limits } from './specification/limits.ts'
import { purpose } from './specification/purpose.ts'
import { resources } from './specification/resources.ts'
import type { Section } from './specification/section.ts'
import { states } from './specification/states.ts'
import { versioning } from './specification/versioning.ts'

/** In the order of the specification. */
const sections = [
  purpose,
  resources,
  states,
  endpoints,
  authentication,
  events,
  errors,
  limits,
  versioning,
]
/** SHA-256 of the specification without headings, the head rows of tables, and white space. */
const SPECIFICATION_DIGEST = '8297aa6e04ac272f0a00d97c2243ce1b3a845c7cdbc5c0ad9873fbd7c410ed74'

const root = new URL('..', import.meta.url)
const read = (path: string | URL): string => readFileSync(new URL(path, root), 'utf8')
const withoutSpace = (text: string): string => text.replace(/\s+/g, '')
/** Also removes the head row of each table with the line of dashes below it. */
const withoutHeadings = (markdown: string): string =>
  markdown.replace(/^#.*\n|^\|.*\n\|[-|]+\|\n/gm, '')

const quotesOf = ({ rows }: Section): string[] => rows.map(({ quote }) => withoutSpace(quote))

test('the quotes are the whole specification, in its order', () => {
  const quoted = sections.flatMap(quotesOf).join('')
  const { SPECIFICATION } = process.env
  if (SPECIFICATION !== undefined)
    expect(quoted).toBe(withoutSpace(withoutHeadings(readFileSync(SPECIFICATION, 'utf8'))))
  expect(createHash('sha256').update(quoted).digest('hex')).toBe(SPECIFICATION_DIGEST)
})

test('the quotes that are not of the specification are in openapi.yaml', () => {
  const contract = withoutSpace(read('openapi.yaml'))
  expect(quotesOf(beyond).filter((quote) => !contract.includes(quote))).toEqual([])
})

for (const { title, rows } of [...sections, beyond])
  describe(title, () => {
    for (const { quote, tests } of rows)
      test(quote, () => {
        const isLeftOpen = quote.includes('not shown')
        if (isLeftOpen) expect(tests).toEqual([])
        else expect(tests).not.toEqual([])
        expect(tests.filter((name) => !testExists(name))).toEqual([])
      })
  })

/** Whether the file has a test, or a group of tests, with this title. Skipped ones do not count.
 *  `name` is `test/file.test.ts > title`, and omits a `${…}` at the start of the title. */
function testExists(name: string): boolean {
  const [path = '', title = ''] = name.split(/ > (.*)/)
  if (title === '' || !existsSync(new URL(path, root))) return false
  const literal = title.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  const call = `(?<!skip|todo)\\(\\s*(['"\`])(?:.*\\}:? )?${literal}\\1,`
  return new RegExp(call).test(read(path))
}
