/** A transaction on a connection of a knex's pool. knex's own makes a knex of more than a hundred functions for each: that takes as long as a small
 *  statement and stays in memory until all of that is searched. And on SQLite it does not wait for what still runs before it undoes. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'

/** A knex or an open transaction: what every query function takes first, alone or inside a `Scope`. */
export interface Sql {
  (table: string | Knex.QueryBuilder): Knex.QueryBuilder
  raw(text: string, bindings?: readonly Knex.RawBinding[]): Knex.Raw
}

/** As knex and its pool see it. */
interface Connection {
  query?(...given: unknown[]): unknown
  /** knex's mark: its pool closes the connection instead of handing it out again. */
  __knex__disposed?: string
}

const ROLLBACK_MS = 5_000

/** What a transaction's statements run on: one that comes after its end must not run in another's. */
export class Held {
  readonly #connection: Connection
  readonly #running = new Set<Promise<unknown>>()
  #isOver = false

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Throws after the transaction's end. */
  get connection(): Connection {
    if (this.#isOver) throw new Error('A statement came after the end of its transaction')
    return this.#connection
  }

  /** As pg has it, which keeps the order of what it is given. */
  query(...given: unknown[]): unknown {
    return this.connection.query?.(...given)
  }

  /** A statement that the end must wait for. */
  async follow<T>(statement: Promise<T>): Promise<T> {
    this.#running.add(statement)
    try {
      return await statement
    } finally {
      this.#running.delete(statement)
    }
  }

  /** Resolves once nothing runs any more; nothing begins from now on. */
  async end(): Promise<void> {
    this.#isOver = true
    await Promise.allSettled(this.#running)
  }
}

/** Commits once `work` has resolved, and otherwise throws what it threw. `last`: statements without parameters that are sent with the commit. */
export async function holdTransaction<T>(knex: Knex, work: (sql: Sql) => Promise<T>, last: () => string[] = () => []): Promise<T> {
  const connection: Connection = await knex.client.acquireConnection()
  const held = new Held(connection)
  const raw: Sql['raw'] = (text, bindings = []) => knex.raw(text, bindings).connection(held)
  const sql = Object.assign((table: string | Knex.QueryBuilder) => knex(table as string).connection(held), { raw })
  const control = async (text: string): Promise<unknown> => knex.raw(text).connection(connection)
  let hasBegun = false
  try {
    // Nothing is sent before its answer: where it is refused, PostgreSQL would keep each statement behind it by itself.
    await control('BEGIN;')
    hasBegun = true
    const value = await work(sql)
    await held.end()
    const answers = [await control([...last(), 'COMMIT;'].join(';'))].flat() as { command?: string }[]
    // PostgreSQL's answer when a statement has failed that nobody asked about.
    if (answers.at(-1)?.command === 'ROLLBACK') throw new Error('Nothing of a transaction was kept, since one of its statements had failed')
    return value
  } catch (error) {
    await held.end()
    if (hasBegun)
      await inTime(control('ROLLBACK;')).catch((failure: Error) => {
        connection.__knex__disposed = failure.message
      })
    throw error
  } finally {
    knex.client.releaseConnection(connection)
  }
}

/** Throws when it takes too long: the connection may be lost. */
async function inTime(undone: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  const late = async (): Promise<void> => {
    await delay(ROLLBACK_MS, undefined, { signal: done.signal })
    throw new Error('A transaction could not be undone in time')
  }
  await Promise.race([undone, late()]).finally(() => done.abort())
}
