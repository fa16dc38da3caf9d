import type { Knex } from 'knex'

export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('webhooks', (table) => {
    // The health that operational events told last, and when. Null: none yet.
    table.text('notified_state')
    table.bigInteger('notified_at')
  })
  await knex.schema.alterTable('accounts', (table) => {
    // JSON: the quotas of which operational events said that 80 % are used.
    table.text('notified_quotas')
  })
}
