/** Copies a SQLite database to PostgreSQL. */
import { Refused } from '../../errors.ts'
import type { Db } from './open.ts'
import { type DatabaseSchema, readExpectedSchema, readSchema } from './schema.ts'
import { type Sql, select } from './statements.ts'
import { type Trx, transaction } from './transaction.ts'

/** Tables in which each database has its own rows. Triggers of the target count the copied records. */
const NOT_COPIED = ['migrations', 'write_checks', 'leases', 'record_counts']
const ROWS_PER_BATCH = 200
/** A chunk of an export has up to 256 KiB. */
const CHUNKS_PER_BATCH = 8

/** Columns that are not copied, and their new values: the queue of the copy is empty. */
const REPLACED: Record<string, Record<string, unknown>> = { deliveries: { queued_at: null } }

type Row = Record<string, unknown> & { copied_rowid: number }

/** Throws `Refused` when the database has tables that are not Muster's. */
export async function assertNoOtherTables(target: Db): Promise<void> {
  const [expected, actual] = await Promise.all([readExpectedSchema('postgres'), readSchema(target)])
  const others = Object.keys(actual).filter((table) => !(table in expected))
  if (others.length > 0)
    throw new Refused(
      `The target is not empty: it has other tables, for example ${others[0]}. Name an empty database.`,
    )
}

export interface CopyProgress {
  table: string
  /** Rows of the table that are copied so far. */
  rows: number
}

/** Copies all rows, except those of `NOT_COPIED`, to a migrated, empty database. Uses one
 *  transaction: an interrupted copy leaves no rows. Returns the number of rows by table. Throws
 *  `Refused` when the target has rows. */
export async function copyRows(
  source: Db,
  target: Db,
  onProgress: (progress: CopyProgress) => void,
): Promise<Map<string, number>> {
  const [schema, sourceSchema] = await Promise.all([
    readExpectedSchema('postgres'),
    readExpectedSchema('sqlite'),
  ])
  const tables = inOrderOfReferences(schema).filter(
    (table) => table in sourceSchema && !NOT_COPIED.includes(table),
  )
  const copied = await transaction(source, async (from) => {
    // This write takes the write lock of SQLite. Without the lock, changes that other commands make
    // meanwhile would be missing in the copy.
    await from.sql('write_checks').increment('checks')
    return transaction(target, async (to) => {
      await assertEmpty(to, tables)
      const counts = new Map<string, number>()
      for (const table of tables) counts.set(table, await copyTable(from, to, table, onProgress))
      return counts
    })
  })
  // Without statistics, PostgreSQL plans the first queries badly.
  await target.write.raw('analyze')
  return copied
}

async function assertEmpty({ sql }: Trx, tables: string[]): Promise<void> {
  for (const table of tables)
    if ((await sql(table).first(sql.raw('1 as found'))) !== undefined)
      throw new Refused(
        `The target is not empty: the table ${table} has rows. Name an empty database.`,
      )
}

async function copyTable(
  from: Trx,
  to: Trx,
  table: string,
  onProgress: (progress: CopyProgress) => void,
): Promise<number> {
  const limit = table === 'export_chunks' ? CHUNKS_PER_BATCH : ROWS_PER_BATCH
  const readBatch = (afterRowid: number): Promise<Row[]> =>
    select(
      from.sql,
      `select rowid as copied_rowid, * from ${table} where rowid > ? order by rowid limit ?`,
      [afterRowid, limit],
    )
  let rows = 0
  let batch = await readBatch(Number.MIN_SAFE_INTEGER)
  for (let last = batch.at(-1); last !== undefined; last = batch.at(-1)) {
    await insertBatch(to.sql, table, batch)
    rows += batch.length
    onProgress({ table, rows })
    batch = await readBatch(last.copied_rowid)
  }
  const [stored] = await select<{ rows: number }>(
    to.sql,
    `select count(*) as rows from ${table}`,
    [],
  )
  if (Number(stored?.rows) !== rows)
    throw new Error(`The table ${table} has ${stored?.rows} rows after ${rows} were copied`)
  return rows
}

/** PostgreSQL converts each value to the type of its column, for example 1 to true, and ignores
 *  names that are no columns, such as `copied_rowid`. */
async function insertBatch(sql: Sql, table: string, batch: Row[]): Promise<void> {
  const rows = batch.map((row) =>
    Object.fromEntries(
      Object.entries({ ...row, ...REPLACED[table] }).map(([column, value]) => [
        column,
        Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : value,
      ]),
    ),
  )
  await sql.raw(
    `insert into ${table} select * from json_populate_recordset(null::${table}, ?::json)`,
    [JSON.stringify(rows)],
  )
}

/** The tables in an order in which each one follows those that its foreign keys reference. */
function inOrderOfReferences(schema: DatabaseSchema): string[] {
  const ordered = new Set<string>()
  const add = (table: string): void => {
    for (const key of Object.values(schema[table]?.keys ?? {})) {
      const referenced = /REFERENCES (\w+)\(/.exec(key)?.[1]
      if (referenced !== undefined && referenced !== table) add(referenced)
    }
    ordered.add(table)
  }
  for (const table of Object.keys(schema)) add(table)
  return [...ordered]
}
