/** A transaction on a connection of a knex's pool. knex's own makes a knex of more than a hundred functions for each: that takes as long as a small
 *  statement and stays in memory until the next full garbage collection. And on SQLite knex undoes without waiting for statements still running. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Sql } from './statements.ts'

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

  /** Nothing begins from now on. Resolves once what is followed has ended. */
  async end(): Promise<void> {
    this.#isOver = true
    await Promise.allSettled(this.#running)
  }
}

interface HoldOptions {
  /** Reading begins before BEGIN is answered: `work` awaits `begun` before it relies on its locks, and before it writes. */
  readsAhead?: boolean
  /** Statements without parameters that are sent with the commit. */
  last?: () => string[]
}

/** Commits once `work` has resolved, and otherwise throws what it threw. */
export async function holdTransaction<T>(
  knex: Knex,
  { readsAhead, last = () => [] }: HoldOptions,
  work: (sql: Sql, begun: Promise<unknown>) => Promise<T>,
): Promise<T> {
  const connection: Connection = await knex.client.acquireConnection()
  const held = new Held(connection)
  const raw: Sql['raw'] = (text, bindings = []) => knex.raw(text, bindings).connection(held)
  const sql = Object.assign(
    (table: string | Knex.QueryBuilder) => knex(table as string).connection(held),
    { raw },
  )
  // Sent at once, so that what the work sends comes behind it.
  const control = (text: string): Promise<unknown> =>
    new Promise(
      (resolve, reject) => void knex.raw(text).connection(connection).then(resolve, reject),
    )
  const begun = control('BEGIN;')
  begun.catch(() => undefined)
  try {
    // Where it is refused, PostgreSQL would keep each write that was sent behind it by itself.
    if (!readsAhead) await begun
    const value = await work(sql, begun)
    await held.end()
    await begun
    const answers = [await control([...last(), 'COMMIT;'].join(';'))].flat() as {
      command?: string
    }[]
    // PostgreSQL's answer when a statement has failed that nobody asked about.
    if (answers.at(-1)?.command === 'ROLLBACK')
      throw new Error('Nothing of a transaction was kept, since one of its statements had failed')
    return value
  } catch (error) {
    await held.end()
    const undo = (): Promise<unknown> => control('ROLLBACK;')
    await inTime(begun.then(undo, () => undefined)).catch((failure: Error) => {
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
