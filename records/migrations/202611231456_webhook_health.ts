import type { Knex } from 'knex'

/** Attempts by duration. */
const BINS = Array.from({ length: 64 }, (_, bin) => `d${bin}`)

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('webhook_health', (table) => {
    table.uuid('webhook_id').primary().references('webhooks.id').onDelete('cascade')
    table.bigInteger('last_attempt_at').notNullable()
    table.text('last_outcome').notNullable()
    table.integer('last_status').nullable()
    table.bigInteger('last_success_at').nullable()
    // Since the last success: the number of failed attempts, the first and the last of them.
    table.integer('failures').notNullable()
    table.bigInteger('failing_since').nullable()
    table.bigInteger('failing_until').nullable()
    // Shorter than the time between the two: long gaps between attempts count in part only.
    table.bigInteger('failing_ms').notNullable()
    // Set when the service has disabled the webhook, until it is enabled.
    table.bigInteger('disabled_at').nullable()
  })
  // Without references: these rows are deleted after a day.
  await knex.schema.createTable('attempt_counts', (table) => {
    table.uuid('webhook_id').notNullable()
    // Of five minutes or of an hour.
    table.integer('span_ms').notNullable()
    table.bigInteger('starts_at').notNullable()
    for (const name of ['succeeded', 'failed', ...BINS]) table.integer(name).notNullable()
    table.primary(['webhook_id', 'span_ms', 'starts_at'])
  })
  await knex.raw('create index attempt_counts_by_age on attempt_counts (starts_at)')
}
