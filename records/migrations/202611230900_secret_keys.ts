import type { Knex } from 'knex'

/** Check values of the keys that encrypt signing secrets, never the keys. */
export async function up(knex: Knex): Promise<void> {
  const postgres = knex.client.config.client === 'pg'
  const text = postgres ? 'text collate "C"' : 'text'
  await knex.schema.createTable('secret_keys', (table) => {
    // 'current' encrypts. 'previous' exists until a rotation has finished.
    table.specificType('name', text).primary()
    table.specificType('check_value', text).notNullable()
  })
}

export async function down(knex: Knex): Promise<void> {
  await knex.schema.dropTable('secret_keys')
}
