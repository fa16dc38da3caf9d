import type { Db } from './database/open.ts'

/** Covers the difference between the clocks of nodes, and the time until PostgreSQL shows a transaction that begins. */
const MARGIN_MS = 5_000

/** No change can appear later whose time is before the result, in epoch milliseconds: each change takes its time
 *  inside its transaction. Call it before you read the changes. Undefined: PostgreSQL does not say. */
export async function findCompleteUntil(db: Db, now: () => Date): Promise<number | undefined> {
  const oldestMs = await db.findOldestTransactionMs()
  return oldestMs === undefined
    ? undefined
    : Math.floor(now().getTime() - (performance.now() - oldestMs) - MARGIN_MS)
}
