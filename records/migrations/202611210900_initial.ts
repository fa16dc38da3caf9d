import type { Knex } from 'knex'

/** Times are epoch milliseconds, booleans are 0/1 on SQLite, JSON is kept as the text that was written. */
export async function up(knex: Knex): Promise<void> {
  const postgres = knex.client.config.client === 'pg'

  const times = (table: Knex.CreateTableBuilder): void => {
    table.bigInteger('created_at').notNullable()
    table.bigInteger('updated_at').notNullable()
  }
  const owned = (table: Knex.CreateTableBuilder): void => {
    table.uuid('id').primary()
    table.uuid('account_id').notNullable().references('accounts.id').onDelete('cascade')
  }
  /** Text that is searched, sorted or unique: by code point on both databases. */
  const text = (table: Knex.CreateTableBuilder, name: string): Knex.ColumnBuilder =>
    table.specificType(name, postgres ? 'text collate "C"' : 'text')
  const index = (table: string, name: string, columns: string, where = ''): Promise<unknown> =>
    knex.raw(`create index ${table}_${name} on ${table} (${columns})${where && ` where ${where}`}`)
  const unique = (table: string, name: string, columns: string, where = ''): Promise<unknown> =>
    knex.raw(
      `create unique index ${table}_${name} on ${table} (${columns})${where && ` where ${where}`}`,
    )
  /** For a sort: by the column, ties by id. Nulls come last in both directions: SQLite reads them so
   *  from one index, PostgreSQL needs a second. */
  const sortIndex = async (table: string, column: string, nullable = false): Promise<void> => {
    await index(table, `by_${column}`, `account_id, ${column}, id`)
    if (nullable && postgres)
      await index(table, `by_${column}_desc`, `account_id, ${column} desc nulls last, id desc`)
  }
  /** For a reference: the other record's id first, so that its deletion finds what points to it, and for
   *  a filter by it. */
  const referenceIndex = (table: string, name: string): Promise<unknown> =>
    index(table, `by_${name}`, `${name}_id, account_id, id`)

  await knex.schema.createTable('accounts', (table) => {
    table.uuid('id').primary()
    text(table, 'name').notNullable()
    times(table)
  })

  await knex.schema.createTable('users', (table) => {
    owned(table)
    text(table, 'email').notNullable()
    text(table, 'email_key').notNullable()
    text(table, 'full_name').notNullable()
    text(table, 'password_hash').nullable()
    text(table, 'role').notNullable()
    text(table, 'status').notNullable().defaultTo('active')
    table.boolean('can_manage_api_keys').notNullable().defaultTo(false)
    table.boolean('can_manage_webhooks').notNullable().defaultTo(false)
    for (const module of ['participants', 'tasks', 'jobs', 'exports', 'finance'])
      text(table, `${module}_permission`).notNullable().defaultTo('none')
    times(table)
  })
  await unique('users', 'email', 'email_key')
  await unique('users', 'one_owner', 'account_id', "role = 'owner'")
  await index('users', 'by_account', 'account_id, id')

  await knex.schema.createTable('api_keys', (table) => {
    owned(table)
    table.uuid('user_id').notNullable().references('users.id').onDelete('cascade')
    text(table, 'name').notNullable()
    text(table, 'access_level').notNullable()
    text(table, 'token_hash').notNullable()
    text(table, 'token_prefix').notNullable()
    table.bigInteger('last_used_at').nullable()
    table.bigInteger('revoked_at').nullable()
    times(table)
  })
  await unique('api_keys', 'token_hash', 'token_hash')
  await index('api_keys', 'by_account', 'account_id, id')
  await index('api_keys', 'by_user', 'user_id, id')

  await knex.schema.createTable('participants', (table) => {
    owned(table)
    text(table, 'full_name').notNullable()
    text(table, 'email').nullable()
    text(table, 'email_key').nullable()
    text(table, 'phone').nullable()
    text(table, 'status').notNullable()
    text(table, 'tags').notNullable()
    text(table, 'external_id').nullable()
    text(table, 'search_text').notNullable()
    times(table)
  })
  await index('participants', 'by_id', 'account_id, id')
  await unique('participants', 'email_key', 'account_id, email_key')
  await unique('participants', 'external_id', 'account_id, external_id')
  await index('participants', 'by_status', 'account_id, status, id')
  await sortIndex('participants', 'full_name')
  await sortIndex('participants', 'email', true)
  await sortIndex('participants', 'created_at')
  await sortIndex('participants', 'updated_at')

  await knex.schema.createTable('participant_tags', (table) => {
    table.uuid('account_id').notNullable().references('accounts.id').onDelete('cascade')
    table.uuid('participant_id').notNullable().references('participants.id').onDelete('cascade')
    text(table, 'tag').notNullable()
    table.primary(['participant_id', 'tag'])
  })
  await index('participant_tags', 'by_tag', 'account_id, tag, participant_id')

  await knex.schema.createTable('tasks', (table) => {
    owned(table)
    text(table, 'title').notNullable()
    text(table, 'description').notNullable()
    text(table, 'status').notNullable()
    table.uuid('participant_id').nullable().references('participants.id')
    table.bigInteger('due_at').nullable()
    table.bigInteger('completed_at').nullable()
    times(table)
  })
  await index('tasks', 'by_id', 'account_id, id')
  await index('tasks', 'by_status', 'account_id, status, id')
  await referenceIndex('tasks', 'participant')
  await sortIndex('tasks', 'title')
  await sortIndex('tasks', 'due_at', true)
  await sortIndex('tasks', 'created_at')
  await sortIndex('tasks', 'updated_at')

  await knex.schema.createTable('jobs', (table) => {
    owned(table)
    text(table, 'title').notNullable()
    text(table, 'description').notNullable()
    text(table, 'status').notNullable()
    text(table, 'screening_questions').notNullable()
    text(table, 'search_text').notNullable()
    times(table)
  })
  await index('jobs', 'by_id', 'account_id, id')
  await index('jobs', 'by_status', 'account_id, status, id')
  await sortIndex('jobs', 'title')
  await sortIndex('jobs', 'created_at')
  await sortIndex('jobs', 'updated_at')

  await knex.schema.createTable('job_applications', (table) => {
    owned(table)
    table.uuid('job_id').notNullable().references('jobs.id')
    table.uuid('participant_id').notNullable().references('participants.id')
    text(table, 'status').notNullable()
    text(table, 'answers').notNullable()
    text(table, 'screening_outcome').nullable()
    times(table)
  })
  await index('job_applications', 'by_id', 'account_id, id')
  await unique('job_applications', 'job_participant', 'job_id, participant_id')
  await referenceIndex('job_applications', 'job')
  await referenceIndex('job_applications', 'participant')
  await index('job_applications', 'by_status', 'account_id, status, id')
  await index('job_applications', 'by_outcome', 'account_id, screening_outcome, id')
  await sortIndex('job_applications', 'created_at')
  await sortIndex('job_applications', 'updated_at')

  await knex.schema.createTable('exports', (table) => {
    owned(table)
    text(table, 'resource').notNullable()
    text(table, 'format').notNullable()
    text(table, 'filters').notNullable()
    text(table, 'status').notNullable()
    table.bigInteger('row_count').nullable()
    table.bigInteger('byte_size').nullable()
    text(table, 'sha256').nullable()
    text(table, 'error').nullable()
    table.integer('tries').notNullable().defaultTo(0)
    table.bigInteger('lease_expires_at').nullable()
    table.bigInteger('completed_at').nullable()
    table.bigInteger('expires_at').nullable()
    table.bigInteger('file_removed_at').nullable()
    times(table)
  })
  await index('exports', 'by_id', 'account_id, id')
  await index('exports', 'by_status', 'account_id, status, id')
  await index('exports', 'by_resource', 'account_id, resource, id')
  await index('exports', 'unfinished', 'lease_expires_at, id', "status in ('queued', 'processing')")
  await index(
    'exports',
    'expiring',
    'expires_at',
    'expires_at is not null and file_removed_at is null',
  )
  await sortIndex('exports', 'created_at')
  await sortIndex('exports', 'completed_at', true)

  // The file of an export, in pieces: any node can serve it, and it commits and disappears with its row.
  await knex.schema.createTable('export_chunks', (table) => {
    table.uuid('export_id').notNullable().references('exports.id').onDelete('cascade')
    table.integer('position').notNullable()
    table.binary('bytes').notNullable()
    table.primary(['export_id', 'position'])
  })

  await knex.schema.createTable('payments', (table) => {
    owned(table)
    table.uuid('participant_id').notNullable().references('participants.id')
    table.uuid('task_id').nullable().references('tasks.id')
    table.bigInteger('amount_minor').notNullable()
    text(table, 'currency').notNullable()
    text(table, 'status').notNullable()
    text(table, 'note').nullable()
    table.bigInteger('paid_at').nullable()
    times(table)
  })
  await index('payments', 'by_id', 'account_id, id')
  await index('payments', 'by_status', 'account_id, status, id')
  await referenceIndex('payments', 'participant')
  await referenceIndex('payments', 'task')
  await index('payments', 'by_currency', 'account_id, currency, id')
  await sortIndex('payments', 'created_at')
  await sortIndex('payments', 'paid_at', true)
  await sortIndex('payments', 'amount_minor')

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
  })
  await index('webhooks', 'by_account', 'account_id, id', 'deleted_at is null')

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
    // Of a webhook that wants the events of one resource in order: the resource. While an earlier one is
    // under way, nothing is planned.
    table.uuid('ordering_key').nullable()
    times(table)
  })
  await index(
    'deliveries',
    'to_queue',
    'next_attempt_at, id, webhook_id',
    'queued_at is null and next_attempt_at is not null',
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

  await knex.schema.createTable('attempts', (table) => {
    table.uuid('account_id').notNullable()
    table.uuid('delivery_id').notNullable().references('deliveries.id').onDelete('cascade')
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
  await index('attempts', 'by_start', 'account_id, started_at')

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
  })
  await index('request_log', 'by_time', 'account_id, created_at, id')
  await index('request_log', 'by_age', 'created_at')

  await knex.schema.createTable('idempotency_keys', (table) => {
    table.uuid('user_id').notNullable().references('users.id').onDelete('cascade')
    text(table, 'key').notNullable()
    text(table, 'fingerprint').notNullable()
    // Null while the first request is in flight; its claim may be taken over after locked_until.
    table.integer('status').nullable()
    text(table, 'headers').nullable()
    text(table, 'body').nullable()
    table.bigInteger('locked_until').notNullable()
    table.bigInteger('expires_at').notNullable()
    table.primary(['user_id', 'key'])
  })
  await index('idempotency_keys', 'by_expiry', 'expires_at')

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
}

export async function down(knex: Knex): Promise<void> {
  const tables = [
    'rate_limits',
    'leases',
    'idempotency_keys',
    'request_log',
    'bulk_jobs',
    'attempts',
    'deliveries',
    'webhooks',
    'events',
    'payments',
    'export_chunks',
    'exports',
    'job_applications',
    'jobs',
    'tasks',
    'participant_tags',
    'participants',
    'api_keys',
    'users',
    'accounts',
  ]
  for (const table of tables) await knex.schema.dropTableIfExists(table)
}
