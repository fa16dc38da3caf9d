import type { Knex } from 'knex'
import { newSchema, type Schema } from './schema-tools.ts'

export async function up(knex: Knex): Promise<void> {
  const schema = newSchema(knex)
  await createParticipantsAndTasks(knex, schema)
  await createJobs(knex, schema)
  await createExportsAndPayments(knex, schema)
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
