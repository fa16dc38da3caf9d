import type { Knex } from 'knex'
import type { Db } from './open.ts'
import type { Trx } from './transaction.ts'

/** A knex or an open transaction: what every query function takes first, alone or inside a `Scope`. */
export interface Sql {
  (table: string | Knex.QueryBuilder): Knex.QueryBuilder
  raw(text: string, bindings?: readonly Knex.RawBinding[]): Knex.Raw
}

/** The rows of a statement in plain text. `name`: PostgreSQL plans it once per connection. */
export async function select<Row>(
  sql: Sql,
  text: string,
  bindings: (string | number)[],
  name?: string,
): Promise<Row[]> {
  const query = sql.raw(text, bindings)
  const result: Row[] | { rows: Row[] } = await (name === undefined
    ? query
    : query.options({ name }))
  return Array.isArray(result) ? result : result.rows
}

/** Statements that need no answers of each other, in their order. PostgreSQL is sent all of a transaction's at once. */
export async function inOrder<Results extends unknown[]>(
  { dialect }: Pick<Trx, 'dialect'>,
  ...statements: { [Index in keyof Results]: () => Promise<Results[Index]> }
): Promise<Results> {
  if (dialect === 'postgres') return Promise.all(statements.map((run) => run())) as Promise<Results>
  const results: unknown[] = []
  for (const run of statements) results.push(await run())
  return results as Results
}

/** An insert of so many rows as one list of values: for SQLite knex would write a query for each row, which takes a fifth more of the CPU. */
export function insertText(table: string, columns: string[], rows: number): string {
  const row = `(${columns.map(() => '?').join(',')})`
  return `insert into ${table} (${columns.map((column) => `"${column}"`).join(',')}) values ${new Array(rows).fill(row).join(',')}`
}

/** A statement's `from`: the rows of one JSON parameter, as `given`. One parameter however many rows, and one plan. */
export function given(dialect: Db['dialect'], columns: Record<string, string>): string {
  const names = Object.keys(columns)
  return dialect === 'postgres'
    ? `json_to_recordset(?::json) as given(${names.map((name) => `"${name}" ${columns[name]}`).join(', ')})`
    : `(select ${names.map((name) => `json_extract(value, '$.${name}') as "${name}"`).join(', ')} from json_each(?)) as given`
}
