import type { Knex } from 'knex'
import { newSchema, type Schema } from './schema-tools.ts'

/** Times are epoch milliseconds, booleans are 0/1 on SQLite, JSON is stored as the text that was written. */
export async function up(knex: Knex): Promise<void> {
  const schema = newSchema(knex)
  await createAccounts(knex, schema)
  await createUsers(knex, schema)
  await createSessions(knex, schema)
  await createAuditLog(knex, schema)
}

async function createAccounts(knex: Knex, { account, index, times, text }: Schema): Promise<void> {
  await knex.schema.createTable('accounts', (table) => {
    table.uuid('id').primary()
    text(table, 'name').notNullable()
    times(table)
    // Also in the rows of its webhooks. Workers lock these before an attempt, so that none starts after the
    // suspension has committed.
    table.bigInteger('suspended_at').nullable()
  })

  // The quotas that an operator has set. The settings have the others.
  await knex.schema.createTable('account_quotas', (table) => {
    account(table)
    table.text('name').notNullable()
    table.bigInteger('value').notNullable()
    table.primary(['account_id', 'name'])
  })

  // A row is the order to erase an account, its progress, and afterwards the one entry that remains of the
  // account.
  await knex.schema.createTable('account_deletions', (table) => {
    // The ID of the account. No reference: the row outlives the account.
    table.uuid('id').primary()
    table.bigInteger('requested_at').notNullable()
    table.bigInteger('removed_rows').notNullable().defaultTo(0)
    table.bigInteger('completed_at').nullable()
  })
  await index('account_deletions', 'unfinished', 'id', 'completed_at is null')
}

async function createUsers(
  knex: Knex,
  { index, unique, times, owned, user, text }: Schema,
): Promise<void> {
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
    user(table)
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
  await index('api_keys', 'revoked', 'revoked_at', 'revoked_at is not null')
}

async function createSessions(
  knex: Knex,
  { account, index, unique, user, text }: Schema,
): Promise<void> {
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
  await index('sessions', 'by_user', 'user_id, id')
  await index('sessions', 'by_expiry', 'expires_at')

  await knex.schema.createTable('invitations', (table) => {
    // The hash of the token in the link, which is shown once. A new invitation replaces the last one.
    text(table, 'token_hash').primary()
    account(table)
    user(table)
    table.bigInteger('expires_at').notNullable()
    table.bigInteger('created_at').notNullable()
  })
  await unique('invitations', 'by_user', 'user_id')
}

async function createAuditLog(knex: Knex, { account, index, text }: Schema): Promise<void> {
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
  await index('audit_log', 'by_account', 'account_id, id')
  for (const column of ['user_id', 'target_id', 'action'])
    await index('audit_log', `by_${column}`, `account_id, ${column}, id`)
}
