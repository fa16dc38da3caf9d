import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { settings } from '../../server/config.ts'

const text = await readFile(new URL('../../docs/settings.md', import.meta.url), 'utf8')
/** Name and default of each row of the tables. */
const rows = [...text.matchAll(/^\| `([A-Z_]+)` \| (?:(.+?) )?\| .+ \|$/gm)].map(
  ([, name = '', documented = '']) => [name, documented] as const,
)

test('docs/settings.md has one row for each setting, and no other rows', () => {
  expect(rows.map(([name]) => name).sort()).toEqual(Object.keys(settings).sort())
  expect(text.match(/^\| /gm)).toHaveLength(rows.length + 2 * (text.match(/^## /gm)?.length ?? 0))
})

// A setting without a default can have one that depends on others, for example http://HOST:PORT.
const withDefault = Object.entries(settings).filter(([, { default: value }]) =>
  Array.isArray(value) ? value.length > 0 : value !== undefined,
)

test.each(withDefault)('docs/settings.md has the default of %s', (name, { default: value }) => {
  expect(Object.fromEntries(rows)[name]).toBe(`\`${value}\``)
})
