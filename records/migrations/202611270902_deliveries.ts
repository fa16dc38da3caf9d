import type { Knex } from 'knex'
import { newSchema, type Schema } from './schema-tools.ts'

export async function up(knex: Knex): Promise<void> {
  const schema = newSchema(knex)
  await createEventsAndWebhooks(knex, schema)
  await createDeliveries(knex, schema)
  await createAttempts(knex, schema)
  await createWebhookHealth(knex, schema)
  await createBulkJobs(knex, schema)
  await createWorkers(knex, schema)
}

async function createEventsAndWebhooks(
  knex: Knex,
  { index, times, owned, text, sortIndex }: Schema,
): Promise<void> {
  await knex.schema.createTable('events', (table) => {
    owned(table)
    text(table, 'event_type').notNullable()
    text(table, 'resource_type').notNullable()
    table.uuid('resource_id').notNullable()
    text(table, 'data').notNullable()
    table.bigInteger('created_at').notNullable()
  })
  await index('events', 'by_id', 'account_id, id')
  await index('events', 'by_type', 'account_id, event_type, id')
  await index('events', 'by_resource', 'account_id, resource_id, id')
  await sortIndex('events', 'created_at')

  await knex.schema.createTable('webhooks', (table) => {
    owned(table)
    text(table, 'url').notNullable()
    text(table, 'description').notNullable()
    text(table, 'event_types').notNullable()
    table.boolean('enabled').notNullable()
    text(table, 'ordering').notNullable()
    text(table, 'secret_encrypted').notNullable()
    text(table, 'next_secret_encrypted').nullable()
    table.uuid('created_by').nullable().references('users.id').onDelete('set null')
    // Kept when it is enabled again, until it is next disabled: what it missed came after this.
    table.bigInteger('disabled_at').nullable()
    table.bigInteger('deleted_at').nullable()
    times(table)
    // The same as in its account.
    table.bigInteger('suspended_at').nullable()
  })
  await index('webhooks', 'by_account', 'account_id, id', 'deleted_at is null')
  await index('webhooks', 'deleted', 'deleted_at', 'deleted_at is not null')

  // Check values of the keys that encrypt signing secrets, never the keys.
  await knex.schema.createTable('secret_keys', (table) => {
    // 'current' encrypts. 'previous' exists until a rotation has finished.
    text(table, 'name').primary()
    text(table, 'check_value').notNullable()
  })
}

async function createDeliveries(
  knex: Knex,
  { postgres, index, times, owned, text }: Schema,
): Promise<void> {
  await knex.schema.createTable('deliveries', (table) => {
    owned(table)
    table.uuid('webhook_id').notNullable().references('webhooks.id')
    table.uuid('event_id').nullable().references('events.id').onDelete('set null')
    text(table, 'event_type').notNullable()
    table.binary('body').notNullable()
    text(table, 'state').notNullable()
    text(table, 'failure_reason').nullable()
    table.integer('attempts').notNullable().defaultTo(0)
    table.bigInteger('next_attempt_at').nullable()
    text(table, 'next_trigger').nullable()
    // When the next attempt was handed to the queue; null: not yet.
    table.bigInteger('queued_at').nullable()
    // The resource, if the webhook wants the events of each resource in order. While an earlier delivery is
    // under way, no attempt is planned.
    table.uuid('ordering_key').nullable()
    times(table)
    // The trace of the request that caused the event.
    table.text('traceparent').nullable()
  })
  // Each delivery is updated about twice, and no update is HOT. At 20 %, the default, a table of 10 million
  // deliveries has 2 million dead rows before a vacuum. The first search for due attempts of a webhook reads
  // them all: measured, 56 ms for 116,000 dead rows, and 0.03 ms after a vacuum.
  if (postgres)
    await knex.raw(
      'alter table deliveries set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000)',
    )
  const isUnqueued = 'queued_at is null and next_attempt_at'
  // The conditions of these two differ, so that PostgreSQL cannot take `unqueued` to find the first of one
  // webhook: it would read past all that are due for others.
  await index('deliveries', 'unqueued', 'next_attempt_at, id', `${isUnqueued} > 0`)
  await index(
    'deliveries',
    'waiting',
    'webhook_id, next_attempt_at, id',
    `${isUnqueued} is not null`,
  )
  await index(
    'deliveries',
    'queued',
    'next_attempt_at, queued_at',
    'queued_at is not null and next_attempt_at is not null',
  )
  await index('deliveries', 'by_webhook', 'webhook_id, id')
  await index('deliveries', 'by_event', 'event_id')
  await index(
    'deliveries',
    'in_order',
    'webhook_id, ordering_key, id',
    "ordering_key is not null and state in ('pending', 'retrying')",
  )
  // Most are delivered, and leave these by it: an update writes to every index that a row is in.
  await index('deliveries', 'undelivered', 'account_id, id', "state <> 'delivered'")
  await index(
    'deliveries',
    'undelivered_by_webhook',
    'webhook_id, state, id',
    "state <> 'delivered'",
  )
}

async function createAttempts(knex: Knex, { postgres, text }: Schema): Promise<void> {
  await knex.schema.createTable('attempts', (table) => {
    table.uuid('account_id').notNullable()
    const delivery = table.uuid('delivery_id').notNullable()
    // PostgreSQL would look up the delivery of each attempt, a tenth of the cost of storing one, although
    // the same transaction has just changed it. SQLite does so at almost no cost.
    if (!postgres) delivery.references('deliveries.id').onDelete('cascade')
    table.integer('number').notNullable()
    text(table, 'trigger').notNullable()
    table.bigInteger('started_at').notNullable()
    table.integer('duration_ms').notNullable()
    text(table, 'outcome').notNullable()
    table.integer('status').nullable()
    text(table, 'response_headers').nullable()
    text(table, 'response_body').nullable()
    text(table, 'error').nullable()
    text(table, 'address').nullable()
    text(table, 'phases').nullable()
    table.primary(['delivery_id', 'number'])
  })
}

async function createWebhookHealth(knex: Knex, { index, durationBins }: Schema): Promise<void> {
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
    for (const name of ['succeeded', 'failed', ...durationBins]) table.integer(name).notNullable()
    table.primary(['webhook_id', 'span_ms', 'starts_at'])
  })
  await index('attempt_counts', 'by_age', 'starts_at')
}

async function createBulkJobs(knex: Knex, { index, times, owned, text }: Schema): Promise<void> {
  await knex.schema.createTable('bulk_jobs', (table) => {
    owned(table)
    text(table, 'kind').notNullable()
    table.uuid('webhook_id').nullable().references('webhooks.id')
    // Null: all.
    text(table, 'event_types').nullable()
    table.bigInteger('since').notNullable()
    table.bigInteger('until').notNullable()
    table.integer('rate').notNullable()
    text(table, 'state').notNullable()
    text(table, 'state_reason').nullable()
    table.integer('total').notNullable()
    table.integer('done').notNullable().defaultTo(0)
    table.integer('skipped').notNullable().defaultTo(0)
    // How far it is: all up to this id of this stage is dealt with.
    text(table, 'stage').notNullable()
    table.uuid('cursor').notNullable()
    // When its rate allows the next batch.
    table.bigInteger('next_at').notNullable()
    // PostgreSQL's number of the transaction that made it.
    table.bigInteger('made_by_transaction').nullable()
    table.uuid('created_by').nullable().references('users.id').onDelete('set null')
    table.bigInteger('ended_at').nullable()
    times(table)
  })
  await index('bulk_jobs', 'by_account', 'account_id, id')
  await index('bulk_jobs', 'running', 'id', "state = 'running'")
}

async function createWorkers(knex: Knex, { postgres }: Schema): Promise<void> {
  // At most one row: while it exists, no node makes an attempt.
  await knex.schema.createTable('delivery_pauses', (table) => {
    table.integer('id').primary()
    table.bigInteger('paused_at').notNullable()
  })

  // The sessions of workers in PostgreSQL, with the attempts that they have leased. An embedded queue starts
  // empty. Unlogged: without a row, the leases of a process that has died expire.
  if (postgres)
    await knex.raw(
      'create unlogged table worker_sessions (id uuid primary key, jobs json not null)',
    )
}
