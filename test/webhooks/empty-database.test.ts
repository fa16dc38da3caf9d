/** The stored database is a binary file, which cannot be reviewed: this test compares it with a new
 *  one. */
import { readFile } from 'node:fs/promises'
import { PGlite } from '@electric-sql/pglite'
import { expect, inject, test } from 'vitest'
import { EMPTY_DATABASE, START_OPTIONS } from '../../webhooks/queue/empty-database.ts'
import { createEmptyDatabase } from '../../webhooks/queue/store-empty-database.ts'

/** Queries by name. Values that differ between two new databases are left out. */
const CONTENTS = {
  version: 'select version()',
  databases: 'select datname, datistemplate, datallowconn, encoding, datcollate from pg_database',
  roles: 'select rolname, rolsuper, rolcanlogin, rolpassword from pg_authid',
  files:
    'select file_name, line_number, type, database, user_name, auth_method from pg_hba_file_rules',
  settings: 'select name, setting, error from pg_file_settings',
  // Partitions have the day of their creation in their names.
  relations: `select oid, regexp_replace(relname, '_[0-9]{8}', '_day'), relnamespace, relkind, relacl from pg_class`,
  functions: 'select oid, proname, prosrc, prolang, proacl from pg_proc',
  triggers: 'select tgname from pg_trigger union all select evtname from pg_event_trigger',
  versions: 'select * from pgboss.version',
  queues: 'select name, policy from pgboss.queue',
  jobs: 'select id from pgboss.job',
  rules: 'select ev_class, rulename, ev_action from pg_rewrite',
} as const

async function contentsOf(database: PGlite): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const [name, statement] of Object.entries(CONTENTS)) {
    const { rows } = await database.query(statement)
    found[name] = rows.map((row) => JSON.stringify(row)).sort()
  }
  await database.close()
  return found
}

test.runIf(inject('database') === 'sqlite')(
  'the stored empty database: the installed PGlite and pg-boss would create the same one',
  async () => {
    const stored = await PGlite.create({
      ...START_OPTIONS,
      loadDataDir: new Blob([await readFile(EMPTY_DATABASE)], { type: 'application/gzip' }),
    })
    const contents = await contentsOf(stored)
    expect(contents.functions?.length).toBeGreaterThan(3_000)
    expect(contents).toEqual(await contentsOf(await createEmptyDatabase()))
  },
)
