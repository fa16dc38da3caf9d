import type { Knex } from 'knex'
import { newSchema, type Schema } from './schema-tools.ts'

/** Times are epoch milliseconds, booleans are 0/1 on SQLite, JSON is stored as the text that was written. */
export async function up(knex: Knex): Promise<void> {
  const schema = newSchema(knex)
  await createAccounts(knex, schema)
  await createSessions(knex, schema)
  await createParticipantsAndTasks(knex, schema)
  await createJobs(knex, schema)
  await createExportsAndPayments(knex, schema)
}

async function createAccounts(
  knex: Knex,
  { index, unique, times, owned, text }: Schema,
): Promise<void> {
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
}

async function createSessions(knex: Knex, { account, user, text }: Schema): Promise<void> {
  await knex.schema.createTable('sessions', (table) => {
    table.uuid('id').primary()
    account(table)
    user(table)
    // The hash of the token in the cookie. The token itself is stored nowhere.
    text(table, 'token_hash').notNullable().unique()
    text(table, 'ip').notNullable()
    text(table, 'user_agent').notNullable()
    // What the next page says about what was done.
    text(table, 'notice').nullable()
    table.bigInteger('last_seen_at').notNullable()
    table.bigInteger('expires_at').notNullable()
    table.bigInteger('created_at').notNullable()
  })
  await knex.raw('create index sessions_by_user on sessions (user_id, id)')
  await knex.raw('create index sessions_by_expiry on sessions (expires_at)')

  await knex.schema.createTable('invitations', (table) => {
    // The hash of the token in the link, which is shown once. A new invitation replaces the last one.
    text(table, 'token_hash').primary()
    account(table)
    user(table)
    table.bigInteger('expires_at').notNullable()
    table.bigInteger('created_at').notNullable()
  })
  await knex.raw('create unique index invitations_by_user on invitations (user_id)')

  await knex.schema.createTable('audit_log', (table) => {
    table.uuid('id').primary()
    account(table)
    // Null: the operator's command line. No reference, and the name as it was: an entry outlives whom and
    // what it is about.
    table.uuid('user_id').nullable()
    text(table, 'user_name').notNullable()
    text(table, 'action').notNullable()
    text(table, 'target_type').notNullable()
    table.uuid('target_id').notNullable()
    text(table, 'target_name').notNullable()
    text(table, 'details').notNullable()
    text(table, 'ip').nullable()
    table.bigInteger('created_at').notNullable()
  })
  await knex.raw('create index audit_log_by_account on audit_log (account_id, id)')
  for (const column of ['user_id', 'target_id', 'action'])
    await knex.raw(`create index audit_log_by_${column} on audit_log (account_id, ${column}, id)`)
}

async function createParticipantsAndTasks(
  knex: Knex,
  { index, unique, times, owned, text, sortIndex, referenceIndex }: Schema,
): Promise<void> {
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
}

async function createJobs(
  knex: Knex,
  { index, unique, times, owned, text, sortIndex, referenceIndex }: Schema,
): Promise<void> {
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
}

async function createExportsAndPayments(
  knex: Knex,
  { index, times, owned, text, sortIndex, referenceIndex }: Schema,
): Promise<void> {
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
}
