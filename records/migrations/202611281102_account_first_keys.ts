import type { Knex } from 'knex'
import {
  changeTables,
  isPostgres,
  KEYS,
  REFERENCES,
  rebuildTable,
  TABLES,
  UNIQUE,
} from './account-first.ts'

/** The primary keys of records begin with the account, so the second index by account and ID is not needed. Foreign
 *  keys have the account, so no record refers to one of another account. */
export async function up(knex: Knex): Promise<void> {
  await (isPostgres(knex) ? replaceKeys(knex) : rebuildTables(knex))
}

/** Begins as the new primary key does. */
const redundantIndex = (table: string): string =>
  table === 'import_chunks' ? 'import_chunks_by_account' : `${table}_by_id`

async function replaceKeys(knex: Knex): Promise<void> {
  const references = REFERENCES.map(({ table, to }) => [table, `${table}_${to}`])
  // Reads all rows, while nodes write.
  for (const [table, name] of references)
    await knex.raw(`alter table ${table} validate constraint ${name}_foreign`)
  await changeTables(knex, 'access exclusive', TABLES, [
    ...references.map(([table, name]) => `alter table ${table} drop constraint ${name}_id_foreign`),
    ...Object.keys(KEYS).flatMap((table) => [
      `alter table ${table} drop constraint ${table}_pkey,
       add constraint ${table}_pkey primary key using index ${table}_key`,
      `drop index if exists ${redundantIndex(table)}`,
    ]),
    ...UNIQUE.flatMap(([, name]) => [
      `drop index ${name}`,
      `alter index ${name}_key rename to ${name}`,
    ]),
  ])
}

async function rebuildTables(knex: Knex): Promise<void> {
  for (const [table, name, columns] of UNIQUE) {
    await knex.raw(`drop index ${name}`)
    await knex.raw(`create unique index ${name} on ${table} (account_id, ${columns})`)
  }
  for (const table of Object.keys(KEYS))
    await knex.raw(`drop index if exists ${redundantIndex(table)}`)
  // Otherwise, SQLite would refuse to rename a table while triggers of other tables have its name.
  await knex.raw('pragma legacy_alter_table = on')
  for (const table of TABLES)
    if (replacements(table).length > 0) await rebuildTable(knex, table, replacements(table))
  await knex.raw('pragma legacy_alter_table = off')
  for (const { table } of REFERENCES) {
    const [problem] = await knex.raw(`pragma foreign_key_check(${table})`)
    if (problem !== undefined)
      throw new Error(`A row refers to a row of another account: ${JSON.stringify(problem)}`)
  }
}

/** Of parts of the SQL that created the table. */
function replacements(table: string): [from: string, to: string][] {
  const list = (...columns: string[]): string => `(\`${columns.join('`, `')}\`)`
  const found = REFERENCES.filter((reference) => reference.table === table).map(
    ({ to }): [string, string] => [
      `foreign key${list(`${to}_id`)} references \`${to}s\`${list('id')}`,
      `foreign key${list('account_id', `${to}_id`)} references \`${to}s\`${list('account_id', 'id')}`,
    ],
  )
  const key = KEYS[table]
  if (key) found.push([`primary key ${list(...key)}`, `primary key ${list('account_id', ...key)}`])
  return found
}
