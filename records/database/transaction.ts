import { hash } from 'node:crypto'
import type { Knex } from 'knex'
import type { Topic } from './announcements.ts'
import { errorCode, isStorageFailure, OutcomeUnknown } from './errors.ts'
import { type Insert, insertText } from './inserts.ts'
import {
  acquireConnection,
  discardConnection,
  releaseConnection,
  TransactionConnection,
} from './knex-internals.ts'
import type { Db } from './open.ts'
import { SharedRollback } from './shared-commits.ts'
import { type Dialect, type Sql, select, sqlOn } from './statements.ts'
import { WITHOUT_WAIT } from './without-wait.ts'

export interface Source {
  dialect: Dialect
  sql: Sql
}

/** An open transaction. */
export interface Trx extends Source {
  /** On PostgreSQL, resolves at once and sends the insert with the next statement of the
   *  transaction or with COMMIT, which saves round trips. Once many rows are collected, sends them
   *  and waits for the result. An error of the insert ends the transaction. */
  insert(insert: Insert): Promise<void>
  /** Are the results of `Opening.read` still current? PostgreSQL: until the transaction sends
   *  another statement. SQLite: always, because no other transaction writes. */
  isOpeningCurrent(): boolean
  /** Runs `work`. When it throws, undoes its statements and announcements, and throws the error. The
   *  transaction goes on. */
  savepoint<T>(work: () => Promise<T>): Promise<T>
  /** Calls `listener` after the commit or rollback. */
  onEnd(listener: () => void): void
  /** Publishes the topic once, after the commit, however often it was announced. */
  announce<Payload>(topic: Topic<Payload>, payload?: Payload): void
}

/** PostgreSQL: deadlock_detected and serialization_failure. The transaction was rolled back and may
 *  be run again. */
const RETRYABLE_CODES = new Set(['40P01', '40001'])
const MAX_RUNS = 3
/** When a rollback takes longer, the connection counts as lost. */
const ROLLBACK_TIMEOUT_MS = 5_000

/** Runs `work` in one transaction and commits it. `work` must read the clock itself: `findCompleteUntil`
 *  relies on it. Rolls back when `work` throws. Runs `work` up to
 *  `MAX_RUNS` times: again after an error of `RETRYABLE_CODES`, and after a `SharedRollback`. Throws
 *  `OutcomeUnknown` when the transaction may have been committed. After any other error, it has
 *  changed nothing. */
export function transaction<T>(db: Db, work: (trx: Trx) => Promise<T>): Promise<T> {
  return transactionAfter(db, { read: async () => undefined }, work)
}

/** `transaction` for what a read writes, such as the time of its session's last use. See
 *  `Opening.isRelaxed`. */
export function relaxedTransaction<T>(db: Db, work: (trx: Trx) => Promise<T>): Promise<T> {
  return transactionAfter(db, { read: async () => undefined, isRelaxed: true }, work)
}

/** How a transaction begins. */
export interface Opening<Result> {
  /** On PostgreSQL sent together with BEGIN, which saves a round trip. It must not write: when
   *  BEGIN fails, PostgreSQL commits every write that was sent after it. */
  read(source: Source): Promise<Result>
  /** PostgreSQL: gives the transaction its ID before it reads anything, so that
   *  `areEventsCommitted` (bulk-batches.ts) sees whether the transaction has ended. */
  isIdentified?: boolean
  /** PostgreSQL: locks this name until the end of the transaction. Throws `LockTaken`. SQLite needs
   *  no lock, because only one transaction writes at a time. */
  lock?: string
  /** For what a read writes. PostgreSQL: uses a connection for reads, and commits without waiting for
   *  the disk or a standby. */
  isRelaxed?: boolean
}

/** Another transaction has locked the name. */
export class LockTaken extends Error {
  override name = 'LockTaken'
}

/** `transaction` for work that needs the result of the opening. */
export async function transactionAfter<Result, T>(
  db: Db,
  opening: Opening<Result>,
  work: (trx: Trx, result: Result) => Promise<T>,
): Promise<T> {
  for (let run = 1; ; run++) {
    try {
      return await runOnce(db, { opening, work, isAlone: run > 1 })
    } catch (error) {
      const isRetryable = error instanceof SharedRollback || RETRYABLE_CODES.has(errorCode(error))
      if (run === MAX_RUNS || !isRetryable) throw error
    }
  }
}

type WorkOn<Result, T> = (
  source: Source,
  connection: TransactionConnection,
  result: Result,
) => Promise<T>

interface Run<Result, T> {
  opening: Opening<Result>
  work: (trx: Trx, result: Result) => Promise<T>
  /** Shares no commit. */
  isAlone: boolean
}

async function runOnce<Result, T>(db: Db, { opening, work, isAlone }: Run<Result, T>): Promise<T> {
  const announced = new Map<Topic<unknown>, unknown[]>()
  const endListeners: (() => void)[] = []
  const listeners: Listeners = {
    onEnd: (listener: () => void) => void endListeners.push(listener),
    announce(topic: Topic<unknown>, payload?: unknown) {
      const payloads = announced.get(topic)
      if (payloads) payloads.push(payload)
      else announced.set(topic, [payload])
    },
    rememberAnnounced() {
      const earlier = new Map([...announced].map(([topic, payloads]) => [topic, [...payloads]]))
      return () => {
        announced.clear()
        for (const [topic, payloads] of earlier) announced.set(topic, payloads)
      }
    },
  }
  const workOn: WorkOn<Result, T> = (source, connection, found) =>
    work(newTrx(source, connection, listeners), found)
  try {
    const result = await (db.sharedCommits
      ? db.sharedCommits.run(async (connection) => {
          const source = sourceOn(db, connection)
          return workOn(source, connection, await opening.read(source))
        }, isAlone)
      : runOnConnection(db, opening, workOn))
    for (const [topic, payloads] of announced) {
      const mustNotify = db.publish(topic.name, topic.merge?.(payloads))
      if (mustNotify) db.notifyOtherNodes(topic.name)
    }
    return result
  } catch (error) {
    const cause = error instanceof OutcomeUnknown ? error.cause : error
    noteStorageFailure(db, cause)
    // What a read writes says nothing about the change of the same request.
    throw opening.isRelaxed ? cause : error
  } finally {
    for (const listener of endListeners) listener()
  }
}

function noteStorageFailure({ storage }: Db, error: unknown): void {
  if (isStorageFailure(error)) storage.refusedAtMs = performance.now()
}

/** PostgreSQL only: runs `work`, which sends one statement with `select` (statements.ts), without
 *  BEGIN and COMMIT. The statement is a transaction of its own, which saves two round trips. When the
 *  connection is lost, it may have been committed. */
export async function inOneStatement<T>(db: Db, work: (source: Source) => Promise<T>): Promise<T> {
  try {
    return await work({ dialect: db.dialect, sql: db.write })
  } catch (error) {
    noteStorageFailure(db, error)
    throw error
  }
}

/** PostgreSQL only: calls `use` while the rows that `read` has locked cannot change. `read` must
 *  not write: see `Opening`. Does not run again after a deadlock. */
export function withLockedRows<T>(
  db: Db,
  read: (source: Source) => Promise<T>,
  use: (result: T) => void,
): Promise<void> {
  return runOnConnection(db, { read }, async (_source, _connection, result) => use(result))
}

/** PostgreSQL only: commits after `work` has resolved. After an error, rolls back and throws the
 *  error, or `OutcomeUnknown` when COMMIT was sent and the connection is lost. */
async function runOnConnection<Result, T>(
  db: Db,
  opening: Opening<Result>,
  work: WorkOn<Result, T>,
): Promise<T> {
  const pool = opening.isRelaxed ? db.read : db.write
  const pooled = await acquireConnection(pool)
  const connection = new TransactionConnection(pooled)
  const source = sourceOn(db, connection)
  const send = (text: string, query_timeout?: number) =>
    pooled.query?.({ text, query_timeout }) as Promise<unknown>
  let isCommitSent = false
  let hasEnded = false
  const begun = send(beginText(opening))
  try {
    const reading = opening.read(source)
    reading.catch(() => undefined)
    // First, because it has the cause when both fail.
    const responses = await begun
    if (opening.lock !== undefined && !isLocked(responses)) throw new LockTaken()
    const result = await reading
    connection.isUsed = false
    const value = await work(source, connection, result)
    const collected = connection.sendCollected()
    await connection.end()
    isCommitSent = true
    const response = (await send('COMMIT;')) as { command?: string } | undefined
    hasEnded = true
    await collected
    if (connection.failure !== undefined) throw connection.failure
    // PostgreSQL responds to COMMIT with ROLLBACK when a statement failed and `work` ignored the
    // error.
    if (response?.command === 'ROLLBACK')
      throw new Error('The transaction was rolled back, because one of its statements had failed')
    return value
  } catch (error) {
    await connection.end()
    // Rolls back even when the opening has failed: its BEGIN may have succeeded.
    if (!hasEnded)
      await send('ROLLBACK;', ROLLBACK_TIMEOUT_MS).catch((failure: Error) => {
        discardConnection(pooled, failure.message)
        // A connection that accepts the ROLLBACK has refused the COMMIT before.
        if (isCommitSent) throw new OutcomeUnknown(error)
      })
    throw connection.failure ?? error
  } finally {
    releaseConnection(pool, pooled)
  }
}

/** BEGIN and the select are one message, so that PostgreSQL skips the select when BEGIN fails. */
function beginText({ isIdentified, isRelaxed, lock }: Opening<unknown>): string {
  const columns = [
    ...(isRelaxed ? [WITHOUT_WAIT] : []),
    ...(isIdentified ? ['pg_current_xact_id()'] : []),
    ...(lock === undefined ? [] : [`pg_try_advisory_xact_lock(${lockNumber(lock)}) as locked`]),
  ]
  return columns.length > 0 ? `BEGIN;select ${columns.join(', ')};` : 'BEGIN;'
}

function lockNumber(name: string): bigint {
  return hash('sha256', name, 'buffer').readBigInt64BE()
}

/** `begun`: the results of `beginText`. The last one is that of the lock. */
function isLocked(begun: unknown): boolean {
  const { rows } = (begun as { rows: { locked?: boolean }[] }[]).at(-1) ?? { rows: [] }
  return rows[0]?.locked === true
}

function sourceOn({ dialect, write: knex }: Db, connection: TransactionConnection): Source {
  return { dialect, sql: Object.assign(sqlOn(knex, connection), { direct: connection.direct }) }
}

interface Listeners extends Pick<Trx, 'onEnd' | 'announce'> {
  /** Returns a function that forgets what was announced since. */
  rememberAnnounced(): () => void
}

function newTrx(
  source: Source,
  connection: TransactionConnection,
  { onEnd, announce, rememberAnnounced }: Listeners,
): Trx {
  const isPostgres = source.dialect === 'postgres'
  return {
    ...source,
    onEnd,
    announce,
    savepoint: (work) => runInSavepoint(source, connection, work, rememberAnnounced()),
    isOpeningCurrent: () => !isPostgres || !connection.isUsed,
    insert: (insert) =>
      isPostgres ? connection.collect(insert) : insertAtOnce(source.sql, insert),
  }
}

/** `forgetAnnounced`: forgets what `work` has announced. */
async function runInSavepoint<T>(
  { sql }: Source,
  connection: TransactionConnection,
  work: () => Promise<T>,
  forgetAnnounced: () => void,
): Promise<T> {
  const send = (text: string) => select(sql, text, [])
  await send('savepoint part')
  try {
    const value = await work()
    await connection.sendCollected()
    if (connection.failure !== undefined) throw connection.failure
    await send('release savepoint part')
    return value
  } catch (error) {
    const cause = connection.failure ?? error
    connection.forgetInserts()
    forgetAnnounced()
    try {
      await send('rollback to savepoint part')
      await send('release savepoint part')
    } catch {
      // The connection is lost, or SQLite has rolled back the whole transaction.
      throw cause
    }
    throw cause
  }
}

async function insertAtOnce(sql: Sql, { table, columns, rows, translate }: Insert): Promise<void> {
  const values = rows.flatMap((row) => columns.map((column) => row[column]))
  const text = insertText(table, columns, rows.length)
  try {
    await sql.raw(text, values as Knex.RawBinding[])
  } catch (error) {
    throw translate ? translate(error) : error
  }
}
