import type { Knex } from 'knex'

/** Counts the deliveries by webhook, when they are created and deleted. An attempt changes no webhook, so updates
 *  have no trigger: it would cost each attempt as much as these cost each delivery. The counts of a webhook, which
 *  are 0 then, are deleted with it. */
export async function up(knex: Knex): Promise<void> {
  await (knex.client.config.client === 'pg' ? countOnPostgres(knex) : countOnSqlite(knex))
}

/** An event adds a row for each of its webhooks, so a statement sums rows the more often, the more it adds. */
async function countOnPostgres(knex: Knex): Promise<void> {
  await knex.raw(`
    create function count_deliveries() returns trigger language plpgsql as $$
    declare added integer;
    begin
      insert into record_counts (account_id, list, value, records, version)
      select account_id, 'deliveries', webhook_id, case tg_op when 'INSERT' then count(*) else -count(*) end,
        floor(random() * 2147483648)
      from changed group by account_id, webhook_id;
      get diagnostics added = row_count;
      if random() < 0.01 * added then
        perform add_up_record_counts((select account_id from changed limit 1), 'deliveries');
      end if;
      return null;
    end $$`)
  for (const [operation, tables] of [
    ['insert', 'new'],
    ['delete', 'old'],
  ])
    await knex.raw(`
      create trigger count_${operation} after ${operation} on deliveries
      referencing ${tables} table as changed for each statement execute function count_deliveries()`)
  await knex.raw(`
    create function forget_delivery_counts() returns trigger language plpgsql as $$
    begin
      delete from record_counts
      where account_id = old.account_id and list = 'deliveries' and value = cast(old.id as text);
      return null;
    end $$`)
  await knex.raw(`
    create trigger forget_delivery_counts after delete on webhooks
    for each row execute function forget_delivery_counts()`)
}

async function countOnSqlite(knex: Knex): Promise<void> {
  for (const [operation, row, records] of [
    ['insert', 'new', 1],
    ['delete', 'old', -1],
  ])
    await knex.raw(`
      create trigger count_${operation}_deliveries after ${operation} on deliveries begin
        insert into record_counts (account_id, list, value, records, version)
        values (${row}.account_id, 'deliveries', ${row}.webhook_id, ${records}, random() >> 33)
        on conflict (account_id, list, value) do update
        set records = records + excluded.records, version = version + excluded.version;
      end`)
  await knex.raw(`
    create trigger forget_delivery_counts after delete on webhooks begin
      delete from record_counts
      where account_id = old.account_id and list = 'deliveries' and value = old.id;
    end`)
}
