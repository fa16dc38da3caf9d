import type { Knex } from 'knex'
import { newSchema } from './schema-tools.ts'

export async function up(knex: Knex): Promise<void> {
  const { text } = newSchema(knex)
  await knex.schema.alterTable('exports', (table) => {
    // JSON.
    text(table, 'columns').notNullable().defaultTo('[]')
  })
}
