/** Keys that begin with the account. Frozen like a migration. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import { Refused } from '../../errors.ts'

/** The columns of the primary key after the account, by table. */
export const KEYS: Record<string, string[]> = {
  participants: ['id'],
  participant_tags: ['participant_id', 'tag'],
  jobs: ['id'],
  job_applications: ['id'],
  tasks: ['id'],
  payments: ['id'],
  exports: ['id'],
  imports: ['id'],
  import_chunks: ['import_id', 'kind', 'position'],
}

/** Unique indexes, and the columns after the account. They replace indexes of the same names. */
export const UNIQUE: [table: string, index: string, columns: string][] = [
  ['users', 'users_by_account', 'id'],
  ['job_applications', 'job_applications_job_participant', 'job_id, participant_id'],
]

interface Reference {
  table: string
  /** The referenced table, without the `s` at its end. */
  to: string
  onDelete?: 'cascade'
}

export const REFERENCES: Reference[] = [
  { table: 'participant_tags', to: 'participant', onDelete: 'cascade' },
  { table: 'job_applications', to: 'job' },
  { table: 'job_applications', to: 'participant' },
  { table: 'tasks', to: 'participant' },
  { table: 'payments', to: 'participant' },
  { table: 'payments', to: 'task' },
  { table: 'export_chunks', to: 'export', onDelete: 'cascade' },
  ...['api_keys', 'sessions', 'invitations', 'idempotency_keys'].map(
    (table): Reference => ({ table, to: 'user', onDelete: 'cascade' }),
  ),
]

/** All tables that have other keys then. */
export const TABLES = [
  ...new Set([
    ...Object.keys(KEYS),
    ...UNIQUE.map(([table]) => table),
    ...REFERENCES.map(({ table }) => table),
  ]),
]

export const isPostgres = (knex: Knex): boolean => knex.client.config.client === 'pg'

/** A statement that waits for a table makes all later statements on the table wait, too. */
const LOCK_WAIT_MS = 100
const LOCK_TRIES = 200
const LOCK_RETRY_MS = 200

/** PostgreSQL: locks the tables in the mode, and then runs the statements, which must not read rows. While a
 *  table is in use, nodes go on between the tries. */
export async function changeTables(
  knex: Knex,
  mode: string,
  tables: string[],
  statements: string[],
): Promise<void> {
  for (let tries = 1; tries <= LOCK_TRIES; tries++)
    try {
      return await knex.transaction(async (trx) => {
        await trx.raw(`set local lock_timeout = ${LOCK_WAIT_MS}`)
        await trx.raw(`lock table ${tables.join(', ')} in ${mode} mode`)
        for (const statement of statements) await trx.raw(statement)
      })
    } catch (error) {
      // A lock timeout or a deadlock.
      if (!['55P03', '40P01'].includes((error as { code?: string }).code ?? '')) throw error
      await delay(LOCK_RETRY_MS)
    }
  throw new Refused(
    `A table was in use all the time, perhaps by a backup or a long query: ${tables.join(', ')}. Try again later.`,
  )
}

/** SQLite: copies the rows to a table with other keys: `replacements` in the SQL of the table and its indexes. The
 *  rows keep their rowids, to which indexes for searches refer. Foreign keys must be off, because the table is
 *  dropped. */
export async function rebuildTable(
  knex: Knex,
  table: string,
  replacements: [from: string, to: string][],
): Promise<void> {
  const objects: string[] = await knex('sqlite_schema')
    .where('tbl_name', table)
    .whereNotNull('sql')
    .orderByRaw("type = 'table' desc, rowid")
    .pluck('sql')
  const [create = '', ...others] = objects.map((sql) =>
    replacements.reduce((text, [from, to]) => text.replace(from, to), sql),
  )
  const names: string[] = await knex.from(knex.raw('pragma_table_info(?)', table)).pluck('name')
  const columns = ['rowid', ...names.map((name) => `"${name}"`)].join(', ')
  await knex.raw(create.replace(table, `${table}_new`))
  await knex.raw(
    `insert into ${table}_new (${columns}) select ${columns} from ${table} order by rowid`,
  )
  await knex.raw(`drop table ${table}`)
  await knex.raw(`alter table ${table}_new rename to ${table}`)
  for (const sql of others) await knex.raw(sql)
}
