/** Removes outdated rows as the service does, without waiting for its schedule or for its clock. */
import { DeletionTime } from '../records/deletion-time.ts'
import type { RemovalRule } from '../records/removal-rules.ts'
import { startHousekeeping } from '../server/housekeeping.ts'
import { newLogger } from '../server/log.ts'
import type { TestApp } from './helpers.ts'

/** Runs the removal rules of one schedule once. Returns the number of removed rows by table. With
 *  `isInDoubt`, runs them as the service does while its clock is in doubt. */
export async function runHousekeeping(
  { db, config }: Pick<TestApp, 'db' | 'config'>,
  every: RemovalRule['every'],
  { now = () => new Date(), isInDoubt = false }: { now?: () => Date; isInDoubt?: boolean } = {},
): Promise<Record<string, number>> {
  const removed: Record<string, number> = {}
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>()
  let runs = 0
  const housekeeping = startHousekeeping(every, {
    db,
    config,
    clock: {
      now,
      async findDeletionTime() {
        runs++
        if (runs === 1) return isInDoubt ? undefined : new DeletionTime(now())
        // The second run starts when the first one has ended. Without a time it removes nothing.
        resolve()
        return undefined
      },
    },
    log: newLogger('warn', { write: (line) => reject(new Error(line)) }),
    removals: {
      onRemoved(table, rows) {
        removed[table] = (removed[table] ?? 0) + rows
      },
      onRun: () => undefined,
    },
  })
  // The first call starts a run, the second one requests another run.
  housekeeping.wake()
  housekeeping.wake()
  await ended.finally(() => housekeeping.stop())
  return removed
}
