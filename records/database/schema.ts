/** The schema of a database, read from its catalogue, whether its tables have partitions or not. records/schema.sqlite.json and
 *  records/schema.postgres.json hold the schema after all migrations. Each start compares them with
 *  the database, and test/records/schema.test.ts compares them with the migrations. */
import { readFile } from 'node:fs/promises'
import type { Db } from './open.ts'
import type { Dialect } from './statements.ts'
import { select } from './statements.ts'

export interface TableSchema {
  /** Type, nullability and default by column name, in the order of the table. On PostgreSQL also
   *  the collation. */
  columns: Record<string, string>
  /** Keys as SQL. On PostgreSQL primary, foreign and unique keys, by name. On SQLite the primary
   *  key as `primary`, and foreign keys by their columns; unique keys are in `indexes`. */
  keys: Record<string, string>
  /** SQL by name, with the predicate. Leaves out the indexes of `keys`. On SQLite also the table that
   *  is the index for searches. */
  indexes: Record<string, string>
  /** SQL by name. Undefined: none. */
  triggers?: Record<string, string>
}

/** Tables by name. */
export type DatabaseSchema = Record<string, TableSchema>

const SQLITE_CATALOGUE = `
  select tables.name,
    (select json_group_object(name, type || iif("notnull", ' not null', '')
        || coalesce(' default ' || dflt_value, ''))
      from pragma_table_info(tables.name)) as columns,
    (select json_group_object(name, sql) from (
      select 'primary' as name, 'primary key (' || group_concat(name, ', ') || ')' as sql
        from (select name from pragma_table_info(tables.name) where pk > 0 order by pk) having count(*) > 0
      union all
      select group_concat("from", ', ' order by seq), 'foreign key references ' || "table" || ' ('
          || group_concat("to", ', ' order by seq) || ') on delete ' || lower(on_delete)
        from pragma_foreign_key_list(tables.name) group by id
      order by name)) as keys,
    (select json_group_object(name, sql) from (
      select name, sql from sqlite_schema
      where type = 'index' and tbl_name = tables.name and sql is not null
        or name = tables.name || '_search'
      order by name)) as indexes,
    (select json_group_object(name, sql) from (
      select name, sql from sqlite_schema
      where type = 'trigger' and tbl_name = tables.name
      order by name) having count(*) > 0) as triggers
  from pragma_table_list as tables
  where schema = 'main' and type = 'table' and name not like 'sqlite\\_%' escape '\\'
  order by name`

const POSTGRES_CATALOGUE = `
  select tables.relname as name,
    (select json_object_agg(attname, format_type(atttypid, atttypmod)
        || coalesce((select ' collate ' || collname from pg_collation
            where oid = attcollation and collname <> 'default'), '')
        || case when attnotnull then ' not null' else '' end
        || coalesce((select ' default ' || pg_get_expr(adbin, adrelid) from pg_attrdef
            where adrelid = attrelid and adnum = attnum), '') order by attnum)
      from pg_attribute
      where attrelid = tables.oid and attnum > 0 and not attisdropped) as columns,
    (select json_object_agg(conname, pg_get_constraintdef(oid) order by conname)
      from pg_constraint where conrelid = tables.oid and contype in ('p', 'f', 'u')) as keys,
    (select json_object_agg(indexes.relname,
        replace(replace(pg_get_indexdef(indexes.oid), ' ON ONLY ', ' ON '),
          ' ON ' || quote_ident(current_schema()) || '.', ' ON ')
        order by indexes.relname)
      from pg_index join pg_class as indexes on indexes.oid = indexrelid
      where indrelid = tables.oid and indisvalid
        and not exists (select 1 from pg_constraint where conindid = indexrelid)) as indexes,
    (select json_object_agg(tgname,
        pg_get_triggerdef(oid, true) || case when tgenabled = 'D' then ' disabled' else '' end
        order by tgname)
      from pg_trigger where tgrelid = tables.oid and not tgisinternal) as triggers
  from pg_class as tables
  where tables.relnamespace = current_schema()::regnamespace and tables.relkind in ('r', 'p')
    and not tables.relispartition
  order by tables.relname`

interface CatalogueRow {
  name: string
  /** JSON on SQLite; the PostgreSQL driver has parsed it already. Null: none. */
  columns: string | Record<string, string> | null
  keys: string | Record<string, string> | null
  indexes: string | Record<string, string> | null
  triggers: string | Record<string, string> | null
}

/** The schema that this version of Muster needs. */
export async function readExpectedSchema(dialect: Dialect): Promise<DatabaseSchema> {
  const file = new URL(`../schema.${dialect}.json`, import.meta.url)
  return JSON.parse(await readFile(file, 'utf8'))
}

export async function readSchema({ dialect, read }: Db): Promise<DatabaseSchema> {
  const catalogue = dialect === 'sqlite' ? SQLITE_CATALOGUE : POSTGRES_CATALOGUE
  const rows = await select<CatalogueRow>(read, catalogue, [])
  return Object.fromEntries(
    rows.map(({ name, columns, keys, indexes, triggers }) => [
      name,
      {
        columns: parse(columns),
        keys: parse(keys),
        indexes: parse(indexes),
        ...(triggers !== null && { triggers: parse(triggers) }),
      },
    ]),
  )
}

function parse(value: CatalogueRow['columns']): Record<string, string> {
  return typeof value === 'string' ? JSON.parse(value) : (value ?? {})
}
