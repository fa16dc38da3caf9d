/** Tables of counts, for reports: reading the counted rows themselves would be too slow. */
import { insertText } from './database/inserts.ts'
import { inBatches, type Sql } from './database/statements.ts'

export interface CountTable {
  name: string
  /** The columns of the primary key. */
  key: string[]
  counts: string[]
}

/** SQLite accepts at most 32,766 in a statement. */
const MAX_VARIABLES = 10_000

/** Counts that are not stored yet. */
export class Counts {
  readonly #table: CountTable
  /** The counts by column, by the key as JSON. */
  readonly #rows = new Map<string, Record<string, number>>()

  constructor(table: CountTable) {
    this.#table = table
  }

  /** Adds 1 in these columns of the row with the key. */
  increment(key: (string | number)[], ...columns: string[]): void {
    const name = JSON.stringify(key)
    const row = this.#rows.get(name) ?? {}
    for (const column of columns) row[column] = (row[column] ?? 0) + 1
    this.#rows.set(name, row)
  }

  /** Adds the counts to the stored ones. */
  async store(sql: Sql): Promise<void> {
    const { name, key, counts } = this.#table
    // Sorted, so that two nodes that update the same rows cannot deadlock.
    const rows = [...this.#rows]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([keyJson, row]) => [...JSON.parse(keyJson), ...counts.map((count) => row[count] ?? 0)])
    const batchRows = Math.floor(MAX_VARIABLES / (key.length + counts.length))
    for (const batch of inBatches(rows, batchRows)) {
      const statement = sql.raw(upsertText(this.#table, batch.length), batch.flat())
      // Most batches have one row, so PostgreSQL plans that statement once per connection.
      await (batch.length === 1 ? statement.options({ name: `add_${name}` }) : statement)
    }
  }
}

function upsertText({ name, key, counts }: CountTable, rows: number): string {
  const sums = counts.map((count) => `${count}=c.${count}+excluded.${count}`).join(',')
  return `${insertText(`${name} as c`, [...key, ...counts], rows)}
    on conflict (${key.join(',')}) do update set ${sums}`
}
