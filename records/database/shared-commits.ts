/** SQLite: transactions that wait for the only writing connection share a commit. A commit waits
 *  for the disk and writes each changed page, so a commit of many transactions costs about as much
 *  as a commit of one. */
import type { Knex } from 'knex'
import { errorCode, OutcomeUnknown } from './errors.ts'
import {
  acquireConnection,
  discardConnection,
  type PooledConnection,
  releaseConnection,
  sendStatement,
  TransactionConnection,
} from './knex-internals.ts'

const MAX_TRANSACTIONS = 64
/** Transactions can join a commit for this long. The first transaction waits meanwhile. */
const JOIN_MS = 20
/** A transaction that has not begun after this time is refused. */
const MAX_WAIT_MS = 15_000

type Work<T> = (connection: TransactionConnection) => Promise<T>

/** One of the transactions with the same commit has failed, or the commit itself. All of them were
 *  rolled back, and each may run again, alone. */
export class SharedRollback extends Error {
  override name = 'SharedRollback'
}

interface Waiting {
  work: Work<unknown>
  isAlone: boolean
  resolve(value: unknown): void
  reject(error: unknown): void
  timeout: NodeJS.Timeout
}

type Outcome = { value: unknown } | { error: unknown; hasWritten: boolean }

export class SharedCommits {
  readonly #knex: Knex
  #waiting: Waiting[] = []
  #isRunning = false
  #openSinceMs: number | undefined

  /** `knex`: the pool of the only connection that writes. */
  constructor(knex: Knex) {
    this.#knex = knex
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** When the open transaction began, by the monotonic clock. Undefined: none is open. */
  get openSinceMs(): number | undefined {
    return this.#openSinceMs
  }

  /** Runs `work` in a transaction and resolves after the commit. `isAlone`: shares the commit with
   *  no other transaction. Otherwise, may throw `SharedRollback`. Throws `OutcomeUnknown` after an
   *  I/O error of the commit. */
  run<T>(work: Work<T>, isAlone: boolean): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const waiting: Waiting = {
      work,
      isAlone,
      resolve,
      reject,
      timeout: setTimeout(() => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting)
        reject(new Error('Unable to acquire a connection: other transactions took too long'))
      }, MAX_WAIT_MS),
    }
    this.#waiting.push(waiting)
    if (!this.#isRunning) void this.#runAll()
    return promise as Promise<T>
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.length > 0) await this.#runGroup().catch((error) => this.#rejectAll(error))
    this.#isRunning = false
  }

  /** Throws when no transaction can begin. */
  async #runGroup(): Promise<void> {
    const connection = await acquireConnection(this.#knex)
    try {
      this.#openSinceMs = performance.now()
      await sendStatement(connection, 'BEGIN IMMEDIATE')
      await this.#runWaiting(connection)
    } finally {
      this.#openSinceMs = undefined
      releaseConnection(this.#knex, connection)
    }
  }

  async #runWaiting(connection: PooledConnection): Promise<void> {
    const group: Waiting[] = []
    const outcomes: Outcome[] = []
    let isCommitting = false
    try {
      for (const next of this.#joining()) {
        group.push(next)
        const outcome = await runWork(next.work, connection)
        if ('error' in outcome && outcome.hasWritten) throw outcome.error
        outcomes.push(outcome)
      }
      isCommitting = true
      await sendStatement(connection, 'COMMIT')
    } catch (error) {
      await sendStatement(connection, 'ROLLBACK').catch((failure: Error) =>
        discardConnection(connection, failure.message),
      )
      // After a crash, SQLite may find the whole transaction in the WAL.
      const isUnknown = isCommitting && errorCode(error).startsWith('SQLITE_IOERR')
      const undone = group.length > 1 ? new SharedRollback() : error
      const reason = isUnknown ? new OutcomeUnknown(error) : undone
      for (const { reject } of group) reject(reason)
      return
    }
    // Reports even failed work only after the commit: it may have read what others of the group
    // wrote.
    for (const [index, outcome] of outcomes.entries()) {
      if ('error' in outcome) group[index]?.reject(outcome.error)
      else group[index]?.resolve(outcome.value)
    }
  }

  /** The transactions that share the next commit, as they come. */
  *#joining(): Generator<Waiting> {
    const deadline = performance.now() + JOIN_MS
    for (let count = 0; count < MAX_TRANSACTIONS; count++) {
      const next = this.#waiting[0]
      if (!next || (count > 0 && (next.isAlone || performance.now() > deadline))) return
      this.#waiting.shift()
      clearTimeout(next.timeout)
      yield next
      if (next.isAlone) return
    }
  }

  #rejectAll(error: unknown): void {
    for (const { reject, timeout } of this.#waiting.splice(0)) {
      clearTimeout(timeout)
      reject(error)
    }
  }
}

async function runWork(work: Work<unknown>, pooled: PooledConnection): Promise<Outcome> {
  const connection = new TransactionConnection(pooled)
  try {
    const value = await work(connection)
    await connection.end()
    return { value }
  } catch (error) {
    await connection.end()
    return { error, hasWritten: connection.hasWritten }
  }
}
