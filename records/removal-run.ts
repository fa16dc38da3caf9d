/** Removes outdated rows in small batches. Each rule of records/removal-rules.ts removes its rows
 *  through a `RemovalRun`. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Db } from './database/open.ts'
import { type Trx, transaction } from './database/transaction.ts'
import type { DeletionTime } from './deletion-time.ts'
import { DAY_MS } from './time-units.ts'

const BATCH_ROWS = 500
/** Between two batches, so that other writers get their turn. */
const BATCH_PAUSE_MS = 50

/** The ages, in days, at which rows are removed. Operators can change them. */
export interface RetentionDays {
  /** Events and their deliveries, from their creation. */
  events: number
  /** Attempts, from their start. */
  attempts: number
  requestLog: number
  auditLog: number
  exports: number
}

/** Numbers of rows, by table. */
export type RemovedRows = Record<string, number>

export interface RemovalRun {
  db: Db
  time: DeletionTime
  retention: RetentionDays
  /** Runs one batch in a transaction and returns the removed rows. Undefined: nothing was removed,
   *  because the run has to end. */
  batch(remove: (trx: Trx) => Promise<RemovedRows>): Promise<RemovedRows | undefined>
  /** True: outdated rows may be left. */
  hasEndedEarly(): boolean
}

interface RemovalOptions extends Pick<RemovalRun, 'db' | 'time' | 'retention'> {
  /** PostgreSQL advisory lock: of the nodes that run with the same key, one removes rows at a
   *  time. */
  lockKey: number
  signal: AbortSignal
  /** Is called after each commit. */
  onRemoved(table: string, rows: number): void
}

/** The run ends when `signal` aborts, or when another node is removing rows. */
export function newRemovalRun(options: RemovalOptions): RemovalRun {
  const { db, time, retention, lockKey, signal, onRemoved } = options
  let hasEnded = false
  return {
    db,
    time,
    retention,
    async batch(remove) {
      hasEnded ||= signal.aborted
      if (hasEnded) return undefined
      const removed = await transaction(db, async (trx) =>
        (await acquireLock(trx, lockKey)) ? remove(trx) : undefined,
      )
      hasEnded ||= removed === undefined
      const counts = Object.entries(removed ?? {}).filter(([, rows]) => rows > 0)
      for (const [table, rows] of counts) onRemoved(table, rows)
      if (counts.length > 0)
        await delay(BATCH_PAUSE_MS, undefined, { signal }).catch(() => undefined)
      return removed
    },
    hasEndedEarly: () => hasEnded || signal.aborted,
  }
}

/** Acquires the lock until the end of the transaction. False: another node has it. With SQLite
 *  there is only one node. */
async function acquireLock({ dialect, sql }: Trx, lockKey: number): Promise<boolean> {
  if (dialect === 'sqlite') return true
  const { rows } = await sql.raw('select pg_try_advisory_xact_lock(?) as locked', [lockKey])
  return rows[0].locked
}

/** Times before this one, in epoch milliseconds, are more than `days` old. */
export function daysBefore({ time }: RemovalRun, days: number): number {
  return time.createdBefore(days * DAY_MS)
}

interface OutdatedRows {
  table: string
  /** The columns of the primary key. */
  key: string[]
  condition(rows: Knex.QueryBuilder): Knex.QueryBuilder
  batchRows?: number
}

/** Removes the rows that match the condition, until none is left or the run ends. */
export async function removeRows(
  run: RemovalRun,
  { table, key, condition, batchRows = BATCH_ROWS }: OutdatedRows,
): Promise<void> {
  let removed: RemovedRows | undefined
  do {
    removed = await run.batch(async ({ sql }) => {
      const batch = condition(sql(table)).select(key).limit(batchRows)
      // The condition is repeated, because PostgreSQL evaluates it again for a row that another
      // transaction has changed meanwhile. For example, an idempotency key that was used again must
      // stay.
      return { [table]: await condition(sql(table)).whereIn(key, batch).delete() }
    })
  } while ((removed?.[table] ?? 0) === batchRows)
}
