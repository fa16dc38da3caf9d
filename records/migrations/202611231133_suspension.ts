import type { Knex } from 'knex'

/** A suspended account has the time in its row, and in the rows of its webhooks: workers lock these before an
 *  attempt, so that none starts after the suspension has committed. */
export async function up(knex: Knex): Promise<void> {
  for (const name of ['accounts', 'webhooks'])
    await knex.schema.alterTable(name, (table) => {
      table.bigInteger('suspended_at').nullable()
    })
}
