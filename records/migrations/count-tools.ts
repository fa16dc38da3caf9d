import type { Knex } from 'knex'

/** Counts the rows of `table` by account and by the values of `column` from now on: triggers add each
 *  change to `record_counts`, in the transaction of the change. They also count what an earlier version
 *  of Muster writes during an upgrade. Frozen like a migration. */
export function countChanges(knex: Knex, table: string, column: string): Promise<void> {
  return knex.client.config.client === 'pg'
    ? countOnPostgres(knex, table, column)
    : countOnSqlite(knex, table, column)
}

/** Adds the rows that were there before the triggers: the difference between the rows and their count. Both are
 *  read in one statement, so no lock is needed, and what changes meanwhile is counted once. Does nothing
 *  where the count is right. */
export async function countExisting(knex: Knex, table: string, column: string): Promise<void> {
  const postgres = knex.client.config.client === 'pg'
  const version = postgres ? 'floor(random() * 2147483648)::bigint' : 'random() >> 33'
  const onConflict = postgres ? '' : ADD_TO_COUNT
  await knex.raw(`
    insert into record_counts (account_id, list, value, records, version)
    select account_id, '${table}', value, sum(records), ${version}
    from (
      select account_id, ${column} as value, count(*) as records from ${table} group by account_id, ${column}
      union all
      select account_id, value, -records from record_counts where list = '${table}'
    ) as differences
    group by account_id, value having sum(records) <> 0 ${onConflict}`)
}

/** A statement trigger adds rows, and never updates one: concurrent changes of an account do not wait for each
 *  other, and cannot deadlock. Every hundredth statement adds up the rows of the account and the list. */
async function countOnPostgres(knex: Knex, table: string, column: string): Promise<void> {
  const insert = (records: string, from: string): string => `
    insert into record_counts (account_id, list, value, records, version)
    select account_id, '${table}', ${column}, ${records}, floor(random() * 2147483648)
    from ${from} group by account_id, ${column};`
  await knex.raw(`
    create function count_${table}() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' then ${insert('count(*)', 'changed')}
      elsif tg_op = 'DELETE' then ${insert('-count(*)', 'changed')}
      else ${insert(
        'sum(records)',
        `(select account_id, ${column}, 1 as records from changed
          union all select account_id, ${column}, -1 from replaced) as differences`,
      )}
      end if;
      if random() < 0.01 then
        perform add_up_record_counts((select account_id from changed limit 1), '${table}');
      end if;
      return null;
    end $$`)
  for (const [operation, tables] of [
    ['insert', 'new table as changed'],
    ['update', 'new table as changed old table as replaced'],
    ['delete', 'old table as changed'],
  ])
    await knex.raw(`
      create trigger count_${operation} after ${operation} on ${table} referencing ${tables}
      for each statement execute function count_${table}()`)
}

const ADD_TO_COUNT = `
  on conflict (account_id, list, value) do update
  set records = records + excluded.records, version = version + excluded.version`

async function countOnSqlite(knex: Knex, table: string, column: string): Promise<void> {
  const add = (row: 'new' | 'old', records: 1 | -1): string => `
    insert into record_counts (account_id, list, value, records, version)
    values (${row}.account_id, '${table}', ${row}.${column}, ${records}, random() >> 33) ${ADD_TO_COUNT};`
  for (const [operation, text] of [
    ['insert', add('new', 1)],
    ['update', add('old', -1) + add('new', 1)],
    ['delete', add('old', -1)],
  ])
    await knex.raw(
      `create trigger count_${operation}_${table} after ${operation} on ${table} begin ${text} end`,
    )
}
