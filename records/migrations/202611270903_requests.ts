import type { Knex } from 'knex'
import { newSchema, type Schema } from './schema-tools.ts'

export async function up(knex: Knex): Promise<void> {
  const schema = newSchema(knex)
  await createRequestLog(knex, schema)
  await createRequestCounts(knex, schema)
  await createNodeTables(knex, schema)
}

async function createRequestLog(
  knex: Knex,
  { postgres, index, owned, text }: Schema,
): Promise<void> {
  await knex.schema.createTable('request_log', (table) => {
    owned(table)
    table.uuid('user_id').notNullable()
    table.uuid('api_key_id').notNullable()
    text(table, 'request_id').notNullable()
    text(table, 'operation_id').nullable()
    text(table, 'method').notNullable()
    text(table, 'path').notNullable()
    table.integer('status').notNullable()
    table.float('duration_ms').notNullable()
    text(table, 'ip').notNullable()
    text(table, 'request_body').nullable()
    text(table, 'response_body').nullable()
    table.bigInteger('created_at').notNullable()
    // What the log does not store: requests with 429 like an earlier one, and bodies beyond the daily limit.
    table.integer('repeats').notNullable().defaultTo(0)
    table.integer('omitted_bytes').notNullable().defaultTo(0)
  })
  // Figures of some thousand requests come from this index alone.
  const figures = 'status, duration_ms, operation_id, user_id, api_key_id'
  const columns = 'account_id, created_at, id'
  await knex.raw(
    `create index request_log_by_time on request_log (${columns}${postgres ? `) include (` : ', '}${figures})`,
  )
  await index('request_log', 'by_age', 'created_at')

  await knex.schema.createTable('idempotency_keys', (table) => {
    table.uuid('user_id').notNullable().references('users.id').onDelete('cascade')
    text(table, 'key').notNullable()
    text(table, 'fingerprint').notNullable()
    table.integer('status').notNullable()
    text(table, 'headers').notNullable()
    text(table, 'body').notNullable()
    table.bigInteger('expires_at').notNullable()
    table.primary(['user_id', 'key'])
  })
  await index('idempotency_keys', 'by_expiry', 'expires_at')
}

async function createRequestCounts(
  knex: Knex,
  { account, durationBins, index, text }: Schema,
): Promise<void> {
  // Figures of more requests come from these tables, which are written with the log.
  await knex.schema.createTable('request_minutes', (table) => {
    account(table)
    table.bigInteger('minute').notNullable()
    for (const name of ['ok', 'client_errors', 'server_errors', ...durationBins])
      table.integer(name).notNullable()
    table.primary(['account_id', 'minute'])
  })
  await index('request_minutes', 'by_age', 'minute')
  await knex.schema.createTable('request_counts', (table) => {
    account(table)
    // A minute or an hour.
    table.integer('span_ms').notNullable()
    table.bigInteger('starts_at').notNullable()
    text(table, 'operation_id').notNullable()
    table.integer('status').notNullable()
    table.integer('requests').notNullable()
    table.primary(['account_id', 'span_ms', 'starts_at', 'operation_id', 'status'])
  })
  await index('request_counts', 'by_age', 'starts_at')
}

async function createNodeTables(knex: Knex, { postgres, text }: Schema): Promise<void> {
  // Work that one node does for all, until it has not said so for a while.
  await knex.schema.createTable('leases', (table) => {
    text(table, 'name').primary()
    table.uuid('holder').notNullable()
    table.bigInteger('expires_at').notNullable()
  })

  // rate-limiter-flexible's own shape. Unlogged on PostgreSQL: a crash resets the counters of the running
  // minute, nothing more.
  if (postgres)
    await knex.raw(
      'create unlogged table rate_limits (key varchar(255) primary key, points integer not null default 0, expire bigint)',
    )

  // One row that /readyz updates, to find out whether the database accepts writes.
  await knex.schema.createTable('write_checks', (table) => {
    table.bigInteger('checks').notNullable()
  })
  await knex('write_checks').insert({ checks: 0 })

  // The marks of the clock: see records/deletion-time.ts.
  await knex.schema.createTable('clock_spans', (table) => {
    table.integer('number').primary()
    table.bigInteger('starts_at').notNullable()
    table.bigInteger('marked_at').notNullable()
    table.bigInteger('steady_ms').notNullable()
    table.bigInteger('seen_ms').notNullable()
    table.bigInteger('stopped_ms').notNullable()
  })
}
