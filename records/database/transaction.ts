import type { PlannedAttempt } from '../planned-attempts.ts'
import { errorCode } from './errors.ts'
import { holdTransaction } from './held-transaction.ts'
import type { Db } from './open.ts'
import type { Sql } from './statements.ts'

/** An open transaction. */
export interface Trx {
  dialect: Db['dialect']
  sql: Sql
  /** Calls `listener` once it is committed or undone. */
  onEnd(listener: () => void): void
  /** Tells the delivery engine, after the commit, that work is due now. Cheap to call many times. `planned`: the attempts that are, unless it
   *  should rather look for them. */
  markDue(work: Due, planned?: PlannedAttempt[]): void
}

/** Work that waits for the delivery engine: attempts that were planned, attempts that are in the queue, or jobs in the background. */
export type Due = 'attempts' | 'queued' | 'jobs'
/** `planned`: all attempts that the commit has made due. Undefined: they are to be looked for. */
export type DueListener = (work: Due, planned?: PlannedAttempt[]) => void

/** The channel on which PostgreSQL tells every worker node what is due: the notifier, a space, and the work. */
export const DUE_CHANNEL = 'muster_due'

/** Attempts that a commit names. More are looked for. */
const MAX_HANDED = 1_000

/** PostgreSQL: deadlock_detected and serialization_failure. The transaction is undone and may simply be run again. */
const RETRYABLE = new Set(['40P01', '40001'])

/** Runs `work` in one transaction and commits it. Whatever `work` throws undoes all of it. */
export async function transaction<T>(db: Db, work: (trx: Trx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transactOnce(db, work)
    } catch (error) {
      if (attempt === 3 || !RETRYABLE.has(errorCode(error))) throw error
    }
  }
}

async function transactOnce<T>(db: Db, work: (trx: Trx) => Promise<T>): Promise<T> {
  const due = new Map<Due, PlannedAttempt[] | undefined>()
  const ended: (() => void)[] = []
  const trx = {
    dialect: db.dialect,
    onEnd: (listener: () => void) => void ended.push(listener),
    markDue(work: Due, planned?: PlannedAttempt[]) {
      const all = due.has(work) ? due.get(work)?.concat(planned ?? []) : planned
      due.set(work, planned && all && all.length <= MAX_HANDED ? all : undefined)
    },
  }
  // NOTIFY is sent by the commit itself, so a node that dies right after it has still told the workers.
  const notifications = () =>
    db.dialect === 'postgres' ? [...due.keys()].map((work) => notification(db, work)) : []
  try {
    const result = await holdTransaction(db.write, { last: notifications }, (sql) =>
      work({ ...trx, sql }),
    )
    for (const [work, planned] of due) for (const listener of db.onDue) listener(work, planned)
    return result
  } finally {
    for (const listener of ended) listener()
  }
}

/** PostgreSQL alone: what `use` does at once is done before anybody else can change the rows that `read` has locked. BEGIN and the reads are sent
 *  together, which saves a round trip, so `read` must not write. Tries once. */
export function whileLocked<T>(
  db: Db,
  read: (source: Pick<Trx, 'dialect' | 'sql'>) => Promise<T>,
  use: (result: T) => void,
): Promise<void> {
  return holdTransaction(db.write, { readsAhead: true }, async (sql, begun) => {
    const result = await read({ dialect: db.dialect, sql })
    await begun
    use(result)
  })
}

/** PostgreSQL alone. Heard by this node too, as its own. */
export async function notifyNodes(db: Db, work: Due): Promise<void> {
  await db.write.raw(notification(db, work))
}

function notification({ notifier }: Db, work: Due): string {
  return `NOTIFY ${DUE_CHANNEL}, '${notifier} ${work}'`
}
