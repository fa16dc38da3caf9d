import type { Knex } from 'knex'

/** The key of each table, and the table that has the account. */
const TABLES = [
  { table: 'export_chunks', key: ['export_id', 'position'], parent: 'exports' },
  { table: 'idempotency_keys', key: ['user_id', 'key'], parent: 'users' },
] as const

/** The column can be null only during this migration: nodes of the previous version insert rows
 *  without it, and the triggers then set it. The next migration sets it in the earlier rows. */
export async function up(knex: Knex): Promise<void> {
  const isPostgres = knex.client.config.client === 'pg'
  for (const { table, key, parent } of TABLES) {
    await knex.schema.alterTable(table, (columns) => void columns.uuid('account_id').nullable())
    const account = `select account_id from ${parent} where id = new.${key[0]}`
    if (isPostgres) {
      await knex.raw(
        `create function ${table}_account() returns trigger language plpgsql as
         $$ begin new.account_id := (${account}); return new; end $$`,
      )
      await knex.raw(
        `create trigger ${table}_account before insert on ${table} for each row
         when (new.account_id is null) execute function ${table}_account()`,
      )
    } else
      await knex.raw(
        `create trigger ${table}_account after insert on ${table} when new.account_id is null begin
           update ${table} set account_id = (${account})
           where ${key.map((column) => `${column} = new.${column}`).join(' and ')};
         end`,
      )
  }
}
