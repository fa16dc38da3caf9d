import type { Knex } from 'knex'

/** PostgreSQL: a transaction that added up the counts of a webhook's deliveries, and was not committed when the
 *  deliveries and the webhook were removed, left its sum. The deletion waits for it, but does not see its row. The next
 *  statement does. */
export async function up(knex: Knex): Promise<void> {
  if (knex.client.config.client !== 'pg') return
  await knex.raw(`
    create or replace function forget_delivery_counts() returns trigger language plpgsql as $$
    begin
      while exists (
        select from record_counts
        where account_id = old.account_id and list = 'deliveries' and value = cast(old.id as text)
      ) loop
        delete from record_counts
        where account_id = old.account_id and list = 'deliveries' and value = cast(old.id as text);
      end loop;
      return null;
    end $$`)
}
