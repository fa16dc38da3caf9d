import type { Knex } from 'knex'

/** What the web console needs: sessions, invitations, the audit log, and counts of requests. */
export async function up(knex: Knex): Promise<void> {
  const postgres = knex.client.config.client === 'pg'
  const text = (table: Knex.CreateTableBuilder, name: string): Knex.ColumnBuilder =>
    table.specificType(name, postgres ? 'text collate "C"' : 'text')
  const account = (table: Knex.CreateTableBuilder): unknown =>
    table.uuid('account_id').notNullable().references('accounts.id').onDelete('cascade')
  const user = (table: Knex.CreateTableBuilder): unknown =>
    table.uuid('user_id').notNullable().references('users.id').onDelete('cascade')

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

  // Figures of some thousand requests come from this index alone.
  const more = 'status, duration_ms, operation_id, user_id, api_key_id'
  await knex.raw('drop index request_log_by_time')
  await knex.raw(
    `create index request_log_by_time on request_log (account_id, created_at, id${postgres ? `) include (${more})` : `, ${more})`}`,
  )

  // Figures of more come from these, which are written with the log.
  await knex.schema.createTable('request_minutes', (table) => {
    account(table)
    table.bigInteger('minute').notNullable()
    for (const name of ['ok', 'client_errors', 'server_errors', ...bins.map((bin) => `d${bin}`)])
      table.integer(name).notNullable()
    table.primary(['account_id', 'minute'])
  })
  await knex.raw('create index request_minutes_by_age on request_minutes (minute)')
  await knex.schema.createTable('request_counts', (table) => {
    account(table)
    // Of a minute or of an hour.
    table.integer('span_ms').notNullable()
    table.bigInteger('starts_at').notNullable()
    text(table, 'operation_id').notNullable()
    table.integer('status').notNullable()
    table.integer('requests').notNullable()
    table.primary(['account_id', 'span_ms', 'starts_at', 'operation_id', 'status'])
  })
  await knex.raw('create index request_counts_by_age on request_counts (starts_at)')
  await countRequests(knex)
}

const MINUTE_MS = 60_000
const bins = Array.from({ length: 64 }, (_, bin) => bin)

/** Counts what was logged before there were counts. */
async function countRequests(knex: Knex): Promise<void> {
  const bin = `case when duration_ms < 1 then 0 when duration_ms >= 10000 then 63
    else 1 + cast(floor(ln(cast(duration_ms as double precision)) / ln(cast(10000 as double precision)) * 62) as integer) end`
  const times = (condition: string): string => `sum(case when ${condition} then 1 else 0 end)`
  await knex.raw(`
    insert into request_minutes select account_id, created_at - created_at % ${MINUTE_MS},
      ${times('status < 400')}, ${times('status between 400 and 499')}, ${times('status >= 500')},
      ${bins.map((number) => times(`bin = ${number}`)).join(', ')}
    from (select account_id, created_at, status, ${bin} as bin from request_log) as logged group by 1, 2`)
  for (const span of [MINUTE_MS, 60 * MINUTE_MS])
    await knex.raw(`
      insert into request_counts select account_id, ${span}, created_at - created_at % ${span}, coalesce(operation_id, ''), status, count(*)
      from request_log group by 1, 2, 3, 4, 5`)
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop index request_log_by_time')
  await knex.raw('create index request_log_by_time on request_log (account_id, created_at, id)')
  for (const table of ['request_counts', 'request_minutes', 'audit_log', 'invitations', 'sessions'])
    await knex.schema.dropTableIfExists(table)
}
