import type { Knex } from 'knex'

type Table = Knex.CreateTableBuilder
export type Schema = ReturnType<typeof newSchema>

/** What the first migrations share. Frozen like a migration: a later migration has its own tools. */
export function newSchema(knex: Knex) {
  const postgres = knex.client.config.client === 'pg'
  const account = (table: Table): void =>
    void table.uuid('account_id').notNullable().references('accounts.id').onDelete('cascade')
  const newIndex =
    (kind: string) =>
    async (table: string, name: string, columns: string, where = ''): Promise<void> => {
      const condition = where && ` where ${where}`
      await knex.raw(`create ${kind} ${table}_${name} on ${table} (${columns})${condition}`)
    }
  const index = newIndex('index')
  return {
    postgres,
    account,
    index,
    unique: newIndex('unique index'),
    /** Columns that count by duration. */
    durationBins: Array.from({ length: 64 }, (_, bin) => `d${bin}`),
    times(table: Table): void {
      table.bigInteger('created_at').notNullable()
      table.bigInteger('updated_at').notNullable()
    },
    owned(table: Table): void {
      table.uuid('id').primary()
      account(table)
    },
    user: (table: Table): void =>
      void table.uuid('user_id').notNullable().references('users.id').onDelete('cascade'),
    /** Text that is searched, sorted or unique: by code point on both databases. */
    text: (table: Table, name: string): Knex.ColumnBuilder =>
      table.specificType(name, postgres ? 'text collate "C"' : 'text'),
    /** For a sort: by the column, ties by ID. Nulls come last in both directions: SQLite reads them so
     *  from one index, PostgreSQL needs a second. */
    async sortIndex(table: string, column: string, nullable = false): Promise<void> {
      await index(table, `by_${column}`, `account_id, ${column}, id`)
      if (nullable && postgres)
        await index(table, `by_${column}_desc`, `account_id, ${column} desc nulls last, id desc`)
    },
    /** For a filter by a reference, and to find what refers to a deleted record. */
    referenceIndex: (table: string, name: string): Promise<void> =>
      index(table, `by_${name}`, `${name}_id, account_id, id`),
  }
}
