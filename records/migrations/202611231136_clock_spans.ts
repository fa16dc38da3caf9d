import type { Knex } from 'knex'

/** The marks of the clock. A database with data begins with the time of its latest request: when that is long
 *  ago, the first start finds the clock in doubt. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('clock_spans', (table) => {
    table.integer('number').primary()
    table.bigInteger('starts_at').notNullable()
    table.bigInteger('marked_at').notNullable()
    table.bigInteger('steady_ms').notNullable()
  })
  const account = await knex('accounts').first('id')
  if (account === undefined) return
  const latest = await knex('request_log').max({ at: 'created_at' }).first()
  const at = latest?.at ?? 0
  await knex('clock_spans').insert({
    number: 1,
    starts_at: at,
    marked_at: at,
    steady_ms: 24 * 60 * 60_000,
  })
}
