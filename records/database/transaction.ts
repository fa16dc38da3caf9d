import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Topic } from './announcements.ts'
import { errorCode, isStorageFailure } from './errors.ts'
import {
  acquireConnection,
  discardConnection,
  releaseConnection,
  TransactionConnection,
} from './knex-internals.ts'
import type { Db, Dialect } from './open.ts'
import { SharedRollback } from './shared-commits.ts'
import type { Sql } from './statements.ts'

/** An open transaction. */
export interface Trx {
  dialect: Dialect
  sql: Sql
  /** Calls `listener` after the commit or rollback. */
  onEnd(listener: () => void): void
  /** Publishes the topic once, after the commit, however often it was announced. */
  announce<Payload>(topic: Topic<Payload>, payload?: Payload): void
}

/** PostgreSQL: deadlock_detected and serialization_failure. The transaction was rolled back and may be
 *  run again. */
const RETRYABLE_CODES = new Set(['40P01', '40001'])
const MAX_RUNS = 3
const ROLLBACK_TIMEOUT_MS = 5_000

/** Runs `work` in one transaction and commits it. Rolls back when `work` throws. Runs `work` again after
 *  a deadlock, and after another transaction with the same commit has failed. */
export async function transaction<T>(db: Db, work: (trx: Trx) => Promise<T>): Promise<T> {
  for (let run = 1; ; run++) {
    try {
      return await runOnce(db, work, run > 1)
    } catch (error) {
      const isRetryable = error instanceof SharedRollback || RETRYABLE_CODES.has(errorCode(error))
      if (run === MAX_RUNS || !isRetryable) throw error
    }
  }
}

async function runOnce<T>(db: Db, work: (trx: Trx) => Promise<T>, isAlone: boolean): Promise<T> {
  const announced = new Map<Topic<unknown>, unknown[]>()
  const endListeners: (() => void)[] = []
  const trx = {
    dialect: db.dialect,
    onEnd: (listener: () => void) => void endListeners.push(listener),
    announce(topic: Topic<unknown>, payload?: unknown) {
      const payloads = announced.get(topic)
      if (payloads) payloads.push(payload)
      else announced.set(topic, [payload])
    },
  }
  try {
    const run = (sql: Sql) => work({ ...trx, sql })
    const result = await (db.sharedCommits
      ? db.sharedCommits.run((own) => run(sqlOn(db.write, own)), isAlone)
      : runOnConnection(db.write, {}, run))
    for (const [topic, payloads] of announced) {
      db.publish(topic.name, topic.merge?.(payloads))
      db.notifyOtherNodes(topic.name)
    }
    return result
  } catch (error) {
    if (isStorageFailure(error)) db.storage.refusedAtMs = performance.now()
    throw error
  } finally {
    for (const listener of endListeners) listener()
  }
}

/** PostgreSQL only: calls `use` while the rows that `read` has locked cannot change. `read` must not
 *  write, since it is sent together with BEGIN, which saves a round trip. Runs once. */
export function withLockedRows<T>(
  db: Db,
  read: (source: Pick<Trx, 'dialect' | 'sql'>) => Promise<T>,
  use: (result: T) => void,
): Promise<void> {
  return runOnConnection(db.write, { sendsBeforeBegun: true }, async (sql, begun) => {
    const result = await read({ dialect: db.dialect, sql })
    await begun
    use(result)
  })
}

interface TransactionOptions {
  /** `work` starts before BEGIN has succeeded. It must await `begun` before it relies on locks, and must
   *  not write: when BEGIN fails, PostgreSQL commits every write that was sent after it. */
  sendsBeforeBegun?: boolean
}

/** PostgreSQL only: commits after `work` has resolved. Otherwise rolls back and throws the error of `work`. */
async function runOnConnection<T>(
  knex: Knex,
  { sendsBeforeBegun }: TransactionOptions,
  work: (sql: Sql, begun: Promise<unknown>) => Promise<T>,
): Promise<T> {
  const connection = await acquireConnection(knex)
  const own = new TransactionConnection(connection)
  const sql = sqlOn(knex, own)
  // Sends the statement now. A knex query sends nothing before its `then` is called.
  const send = (text: string): Promise<unknown> =>
    new Promise(
      (resolve, reject) => void knex.raw(text).connection(connection).then(resolve, reject),
    )
  const begun = send('BEGIN;')
  begun.catch(() => undefined)
  try {
    if (!sendsBeforeBegun) await begun
    const value = await work(sql, begun)
    await own.end()
    await begun
    const result = (await send('COMMIT;')) as { command?: string } | undefined
    // PostgreSQL responds to COMMIT with ROLLBACK when a statement failed and `work` ignored the error.
    if (result?.command === 'ROLLBACK')
      throw new Error('The transaction was rolled back, because one of its statements had failed')
    return value
  } catch (error) {
    await own.end()
    const rolledBack = begun.then(
      () => send('ROLLBACK;'),
      () => undefined,
    )
    await withTimeout(rolledBack).catch((failure: Error) =>
      discardConnection(connection, failure.message),
    )
    throw error
  } finally {
    releaseConnection(knex, connection)
  }
}

function sqlOn(knex: Knex, own: TransactionConnection): Sql {
  const raw: Sql['raw'] = (text, bindings = []) => knex.raw(text, bindings).connection(own)
  return Object.assign(
    (table: string | Knex.QueryBuilder) => knex(table as string).connection(own),
    { raw },
  )
}

/** Throws when the rollback takes too long: the connection may be lost. */
async function withTimeout(rolledBack: Promise<unknown>): Promise<void> {
  const timer = new AbortController()
  const expire = async (): Promise<void> => {
    await delay(ROLLBACK_TIMEOUT_MS, undefined, { signal: timer.signal })
    throw new Error('The rollback timed out')
  }
  await Promise.race([rolledBack, expire()]).finally(() => timer.abort())
}
