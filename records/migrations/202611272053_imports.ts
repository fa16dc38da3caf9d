import type { Knex } from 'knex'
import { newSchema } from './schema-tools.ts'

/** Imports, and their files in pieces: any node can read them. The pieces of an upload are stored before
 *  its import is, so nothing refers to the import. */
export async function up(knex: Knex): Promise<void> {
  const { account, index, owned, text, times, sortIndex } = newSchema(knex)
  await knex.schema.createTable('imports', (table) => {
    owned(table)
    table.uuid('user_id').notNullable()
    table.uuid('api_key_id').nullable()
    text(table, 'resource').notNullable()
    text(table, 'mode').notNullable()
    text(table, 'format').notNullable()
    table.boolean('dry_run').notNullable()
    text(table, 'columns').nullable()
    text(table, 'status').notNullable()
    table.integer('row_count').nullable()
    for (const outcome of ['created', 'updated', 'unchanged', 'refused'])
      table.integer(`${outcome}_count`).notNullable().defaultTo(0)
    table.bigInteger('byte_size').notNullable()
    text(table, 'error').nullable()
    table.integer('tries').notNullable().defaultTo(0)
    table.integer('tries_before').notNullable().defaultTo(0)
    table.bigInteger('lease_expires_at').nullable()
    table.bigInteger('completed_at').nullable()
    table.bigInteger('expires_at').nullable()
    table.bigInteger('file_removed_at').nullable()
    times(table)
  })
  await index('imports', 'by_id', 'account_id, id')
  await index('imports', 'by_status', 'account_id, status, id')
  await index('imports', 'by_resource', 'account_id, resource, id')
  await index('imports', 'unfinished', 'lease_expires_at, id', "status in ('queued', 'processing')")
  await index(
    'imports',
    'expiring',
    'expires_at',
    'expires_at is not null and file_removed_at is null',
  )
  await sortIndex('imports', 'created_at')
  await sortIndex('imports', 'completed_at', true)
  await knex.schema.createTable('import_chunks', (table) => {
    account(table)
    table.uuid('import_id').notNullable()
    text(table, 'kind').notNullable()
    table.integer('position').notNullable()
    table.binary('bytes').notNullable()
    table.primary(['import_id', 'kind', 'position'])
  })
  await index('import_chunks', 'by_account', 'account_id, import_id')
}
