import type { Knex } from 'knex'

/** The index for `filter[search]` of the table: it finds the trigrams of `search_text`. Frozen like a
 *  migration. `concurrently`: on PostgreSQL, outside of a transaction, so that other nodes can write
 *  meanwhile. */
export async function createSearchIndex(
  knex: Knex,
  table: string,
  { concurrently = false } = {},
): Promise<void> {
  if (knex.client.config.client !== 'pg') return createSqliteIndex(knex, table)
  const { rows } = await knex.raw(
    "select 1 from pg_opclass where opcname = 'gin_trgm_ops' and pg_opclass_is_visible(oid)",
  )
  // Without the extension pg_trgm, a search reads all records of the account.
  if (rows.length === 0) return
  // New entries wait in a list, which is cheaper than to insert each trigram at once. Every search reads
  // this list, so it is shorter than the default of 4 MB.
  await knex.raw(
    `create index ${concurrently ? 'concurrently' : ''} ${table}_search on ${table}
     using gin (search_text gin_trgm_ops) with (gin_pending_list_limit = 256)`,
  )
}

/** The index refers to rows by their rowid. SQLite keeps the rowids of a table that has a primary key,
 *  also with VACUUM. */
async function createSqliteIndex(knex: Knex, table: string): Promise<void> {
  const index = `${table}_search`
  await knex.raw(
    `create virtual table ${index} using fts5(search_text, content = '${table}',
     tokenize = 'trigram case_sensitive 1', detail = none, columnsize = 0)`,
  )
  // Each commit adds a segment. At 16 segments of one size, FTS5 merges them all at once, so it must begin
  // before. The default of 4 merges more often, which doubles the CPU time of the index.
  await knex.raw(`insert into ${index} (${index}, rank) values ('automerge', 12)`)
  for (const command of ['rebuild', 'optimize'])
    await knex.raw(`insert into ${index} (${index}) values ('${command}')`)
  // FTS5 removes the trigrams of the text that it is given, so this must be the text that it indexed.
  const remove = `insert into ${index} (${index}, rowid, search_text)
    values ('delete', old.rowid, old.search_text);`
  const add = `insert into ${index} (rowid, search_text) values (new.rowid, new.search_text);`
  await knex.raw(`create trigger ${index}_insert after insert on ${table} begin ${add} end`)
  await knex.raw(`create trigger ${index}_delete after delete on ${table} begin ${remove} end`)
  await knex.raw(
    `create trigger ${index}_update after update of search_text on ${table}
     when old.search_text <> new.search_text begin ${remove} ${add} end`,
  )
}
