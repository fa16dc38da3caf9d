/** Divides the tables of an empty database by a hash of the account. PostgreSQL then refuses keys and conflicts without
 *  the account, as distributed databases do. Leaves out tables with unique keys without the account, and
 *  `record_counts`: it adds up rows by their place in the table, which says nothing in several partitions. */
import pg from 'pg'

const DIVIDE = `
do $$
declare
  found record;
  object record;
begin
  create temp table targets as
  select oid as id, relname as name from pg_class
  where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname <> 'record_counts'
    and exists (select from pg_attribute where attrelid = pg_class.oid and attname = 'account_id')
    and not exists (
      select from pg_index where indrelid = pg_class.oid and indisunique and not exists (
        select from pg_attribute
        where attrelid = indrelid and attname = 'account_id' and attnum = any (indkey)));
  create temp table foreign_keys as
  select format('alter table %s drop constraint %I', conrelid::regclass, conname) as remove,
    format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as restore
  from pg_constraint
  where contype = 'f' and (conrelid in (select id from targets) or confrelid in (select id from targets));
  create temp table objects as
  select conrelid as id, 1 as step,
    format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as restore
  from pg_constraint where contype in ('p', 'u', 'c') and conrelid in (select id from targets)
  union all
  select indrelid, 2, pg_get_indexdef(indexrelid) from pg_index
  where indrelid in (select id from targets)
    and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u'))
  union all
  select tgrelid, 3, pg_get_triggerdef(oid) from pg_trigger
  where tgrelid in (select id from targets) and not tgisinternal;
  for object in select remove from foreign_keys loop execute object.remove; end loop;
  for found in select id, name from targets loop
    execute format('alter table %I rename to %I', found.name, found.name || '_whole');
    execute format('create table %I (like %I including defaults including identity) partition by hash (account_id)',
      found.name, found.name || '_whole');
    for part in 0..3 loop
      execute format('create table %I partition of %I for values with (modulus 4, remainder %s)',
        found.name || '_' || part, found.name, part);
    end loop;
    execute format('drop table %I', found.name || '_whole');
    for object in select restore from objects where id = found.id order by step loop
      execute object.restore;
    end loop;
  end loop;
  for object in select restore from foreign_keys loop execute object.restore; end loop;
end $$`

export async function divideByAccount(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    await client.query(DIVIDE)
  } finally {
    await client.end()
  }
}
