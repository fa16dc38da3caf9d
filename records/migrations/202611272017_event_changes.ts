import type { Knex } from 'knex'
import { newSchema } from './schema-tools.ts'

export async function up(knex: Knex): Promise<void> {
  const { text } = newSchema(knex)
  await knex.schema.alterTable('events', (table) => {
    text(table, 'changes').nullable()
    // Null in events of earlier versions. Without references to keys and users: an event never changes.
    text(table, 'actor_type').nullable()
    table.uuid('api_key_id').nullable()
    table.uuid('user_id').nullable()
  })
}
