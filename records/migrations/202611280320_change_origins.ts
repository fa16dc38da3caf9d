import type { Knex } from 'knex'

/** Null in rows of earlier versions, and of changes that no request has caused. Without references to keys:
 *  events and audit entries never change. */
export async function up(knex: Knex): Promise<void> {
  for (const table of ['events', 'imports'])
    await knex.schema.alterTable(table, (columns) => {
      columns.text('ip').nullable()
      columns.text('request_id').nullable()
    })
  await knex.schema.alterTable('audit_log', (columns) => {
    columns.uuid('api_key_id').nullable()
    columns.text('request_id').nullable()
  })
}
