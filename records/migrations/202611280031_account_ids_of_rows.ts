import type { Knex } from 'knex'

/** A transaction of its own: it locks only rows, so nodes of the previous version keep working. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(
    `update export_chunks set account_id = (select account_id from exports where id = export_id)
     where account_id is null`,
  )
  await knex.raw(
    `update idempotency_keys set account_id = (select account_id from users where id = user_id)
     where account_id is null`,
  )
}
