import type { Knex } from 'knex'
import { type NamedStatement, toNumbered } from './inserts.ts'

export type Dialect = 'sqlite' | 'postgres'

/** A knex or an open transaction: the first parameter of every query function, alone or inside a
 *  `Scope`. */
export interface Sql {
  (table: string | Knex.QueryBuilder): Knex.QueryBuilder
  raw(text: string, bindings?: readonly Knex.RawBinding[]): Knex.Raw
  /** PostgreSQL only: runs a statement without knex. */
  direct?(statement: NamedStatement): Promise<{ rows: unknown[] }>
}

/** Statements that run on `connection`, which has the method `query` of a connection of pg. */
export function sqlOn(knex: Knex, connection: object): Sql {
  const raw: Sql['raw'] = (text, bindings = []) => knex.raw(text, bindings).connection(connection)
  const table = (name: string | Knex.QueryBuilder) => knex(name as string).connection(connection)
  return Object.assign(table, { raw })
}

/** A part of a statement, and the values of its question marks. */
export interface Condition {
  sql: string
  bindings: (string | number | boolean)[]
  /** SQLite: an index finds the few rows that meet the condition. */
  isSelective?: boolean
}

/** The rows of a statement in plain SQL. `name`: PostgreSQL plans the statement once per
 *  connection; SQLite ignores it. */
export async function select<Row>(
  sql: Sql,
  text: string,
  bindings: Condition['bindings'],
  name?: string,
): Promise<Row[]> {
  if (sql.direct)
    return (await sql.direct({ text: toNumbered(text), values: bindings, name })).rows as Row[]
  const query = sql.raw(text, bindings)
  const result: Row[] | { rows: Row[] } = await (name === undefined
    ? query
    : query.options({ name }))
  return Array.isArray(result) ? result : result.rows
}

export async function countFound(query: Knex.QueryBuilder): Promise<number> {
  const [row]: { total: number }[] = await query.count({ total: '*' })
  return Number(row?.total)
}

/** Runs independent statements in their order. On PostgreSQL all are sent at once, which saves
 *  round trips. */
export async function runInOrder<Results extends unknown[]>(
  { dialect }: { dialect: Dialect },
  ...statements: { [Index in keyof Results]: () => Promise<Results[Index]> }
): Promise<Results> {
  if (dialect === 'postgres') return Promise.all(statements.map((run) => run())) as Promise<Results>
  const results: unknown[] = []
  for (const run of statements) results.push(await run())
  return results as Results
}

/** Parts of at most `size` items: the variables of a statement are limited. */
export function inBatches<Item>(items: Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, batch) =>
    items.slice(batch * size, (batch + 1) * size),
  )
}

/** A condition for rows with one of the IDs. It has one parameter for any number of IDs, so the
 *  statement and its plan stay the same. */
export function idIn(dialect: Dialect, ids: string[], column = 'id'): Condition {
  return dialect === 'postgres'
    ? { sql: `${column} = any (?::uuid[])`, bindings: [`{${ids.join(',')}}`] }
    : { sql: `${column} in (select value from json_each(?))`, bindings: [JSON.stringify(ids)] }
}

/** A `from` item named `input`: the rows of one JSON parameter. `columns` maps names to PostgreSQL
 *  types. With one parameter for any number of rows, the statement and its plan stay the same. */
export function jsonRows(dialect: Dialect, columns: Record<string, string>): string {
  const names = Object.keys(columns)
  if (dialect === 'postgres') {
    const typed = names.map((name) => `"${name}" ${columns[name]}`).join(', ')
    return `json_to_recordset(?::json) as input(${typed})`
  }
  const values = names.map((name) => `json_extract(value, '$.${name}') as "${name}"`).join(', ')
  return `(select ${values} from json_each(?)) as input`
}
