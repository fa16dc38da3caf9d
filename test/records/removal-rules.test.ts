/** Each table has a rule for the removal of its rows, or a reason to keep them. docs/operations.md
 *  lists both. */
import { readFile } from 'node:fs/promises'
import { expect, inject, test } from 'vitest'
import { readExpectedSchema } from '../../records/database/schema.ts'
import { permanentTables, removalRules } from '../../records/removal-rules.ts'
import { readConfig } from '../../server/config.ts'
import { newDatabase } from '../helpers.ts'

const readRepositoryFile = (path: string): Promise<string> =>
  readFile(new URL(`../../${path}`, import.meta.url), 'utf8')
const tablesWithRule = removalRules.map(({ table }) => table)

test('each table has either a rule for the removal of its rows or a reason to keep them', async () => {
  const tables = Object.keys(await readExpectedSchema(inject('database')))
  // Only PostgreSQL has these two.
  const expected = new Set([...tables, 'rate_limits', 'worker_sessions'])
  const listed = [...tablesWithRule, ...Object.keys(permanentTables)]
  expect(listed.toSorted()).toEqual([...expected].toSorted())
})

test('docs/operations.md lists the rules and the reasons', async () => {
  const text = await readRepositoryFile('docs/operations.md')
  const section = text.split('\n## ').find((part) => part.startsWith('What is deleted, and when'))
  const rows = section?.split('\n').filter((line) => line.startsWith('| `'))
  expect(rows).toEqual([
    ...removalRules.map(
      ({ table, rule, setting }) =>
        `| \`${table}\` | ${rule} | ${setting === undefined ? '' : `\`${setting}\``} |`,
    ),
    ...Object.entries(permanentTables).map(([table, reason]) => `| \`${table}\` | ${reason} |`),
  ])
})

test('the settings of the rules: each can be set, and has a row in docs/settings.md', async () => {
  await using database = await newDatabase()
  const documented = await readRepositoryFile('docs/settings.md')
  const settings = new Set(removalRules.flatMap(({ setting }) => setting ?? []))
  for (const setting of settings) {
    const { retentionDays } = readConfig({ ...database.environment, [setting]: '12345' })
    expect(Object.values(retentionDays)).toContain(12_345)
    expect(() => readConfig({ ...database.environment, [setting]: 'x' })).toThrow(setting)
    expect(documented).toContain(`| \`${setting}\` | `)
  }
})
