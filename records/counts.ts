/** Tables of counts, for reports: reading the counted rows themselves would be too slow. */
import { jsonRows } from './database/statements.ts'
import type { Source } from './database/transaction.ts'

export interface CountTable {
  name: string
  /** The columns of the primary key, with their PostgreSQL types. */
  key: Record<string, string>
  counts: string[]
}

/** Counts that are not stored yet. */
export class Counts {
  readonly #table: CountTable
  /** By the key as JSON: the count of each column. */
  readonly #rows = new Map<string, Record<string, number>>()

  constructor(table: CountTable) {
    this.#table = table
  }

  /** Adds 1 to each of the columns in the row with this key, and 2 to a column that is listed
   *  twice. */
  increment(key: Record<string, string | number>, columns: string[]): void {
    const name = JSON.stringify(key)
    const row = this.#rows.get(name) ?? {}
    for (const column of columns) row[column] = (row[column] ?? 0) + 1
    this.#rows.set(name, row)
  }

  /** Adds the counts to the stored ones. */
  async store({ dialect, sql }: Source): Promise<void> {
    const { name, key, counts } = this.#table
    const types = { ...key, ...Object.fromEntries(counts.map((count) => [count, 'integer'])) }
    const columns = Object.keys(types)
    const sums = counts.map((count) => `${count} = stored.${count} + excluded.${count}`)
    // Sorted, so that two nodes that update the same rows cannot deadlock.
    const rows = [...this.#rows]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([keyJson, row]) => ({ ...JSON.parse(keyJson), ...row }))
    // SQLite cannot parse "insert … select … on conflict" without a where.
    const text = `insert into ${name} as stored (${columns.join(', ')})
      select ${columns.map((column) => (column in key ? column : `coalesce(${column}, 0)`)).join(', ')}
      from ${jsonRows(dialect, types)} where true
      on conflict (${Object.keys(key).join(', ')}) do update set ${sums.join(', ')}`
    await sql.raw(text, [JSON.stringify(rows)]).options({ name: `add_${name}` })
  }
}
