import type { Knex } from 'knex'

/** What the web console needs: sessions, invitations and the audit log. */
export async function up(knex: Knex): Promise<void> {
  const postgres = knex.client.config.client === 'pg'
  const text = (table: Knex.CreateTableBuilder, name: string): Knex.ColumnBuilder =>
    table.specificType(name, postgres ? 'text collate "C"' : 'text')
  const account = (table: Knex.CreateTableBuilder): unknown =>
    table.uuid('account_id').notNullable().references('accounts.id').onDelete('cascade')
  const user = (table: Knex.CreateTableBuilder): unknown => table.uuid('user_id').notNullable().references('users.id').onDelete('cascade')

  await knex.schema.createTable('sessions', (table) => {
    table.uuid('id').primary()
    account(table)
    user(table)
    // Of the cookie, which is stored nowhere.
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
    // Of the link, which is shown once. A user has one at most: a new one replaces it.
    text(table, 'token_hash').primary()
    account(table)
    user(table)
    table.bigInteger('expires_at').notNullable()
    table.bigInteger('created_at').notNullable()
  })
  await knex.raw('create unique index invitations_by_user on invitations (user_id)')
  await knex.raw('create index invitations_by_expiry on invitations (expires_at)')

  await knex.schema.createTable('audit_log', (table) => {
    table.uuid('id').primary()
    account(table)
    // Null: the operator's command line. No reference, and the name as it was: an entry outlives whom and what it is about.
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
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['audit_log', 'invitations', 'sessions']) await knex.schema.dropTableIfExists(table)
}
