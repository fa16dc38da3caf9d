import type { Knex } from 'knex'

/** Removals find their rows by these indexes. The deletion of a webhook now erases its signing secrets, and
 *  this erases those of webhooks that were deleted before. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(
    'create index api_keys_revoked on api_keys (revoked_at) where revoked_at is not null',
  )
  await knex.raw(
    'create index webhooks_deleted on webhooks (deleted_at) where deleted_at is not null',
  )
  await knex('webhooks')
    .whereNotNull('deleted_at')
    .update({ secret_encrypted: '', next_secret_encrypted: null })
}
