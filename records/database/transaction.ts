import type { Topic } from './announcements.ts'
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
  /** Publishes the topic once the transaction is committed, however often it was announced. */
  announce<Payload>(topic: Topic<Payload>, payload?: Payload): void
}

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
  // Sent with COMMIT, so a node that dies just after the commit has still notified the others.
  const notifyStatements = (): string[] =>
    db.dialect === 'postgres'
      ? [...announced.keys()].map(({ name }) => db.notifyStatement(name))
      : []
  try {
    const result = await holdTransaction(db.write, { last: notifyStatements }, (sql) =>
      work({ ...trx, sql }),
    )
    for (const [topic, payloads] of announced) db.publish(topic.name, topic.merge?.(payloads))
    return result
  } finally {
    for (const listener of endListeners) listener()
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
