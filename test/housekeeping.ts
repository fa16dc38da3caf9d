/** Removes outdated rows as the service does, without waiting for its schedule or for its clock. */
import { DeletionTime } from '../records/clock-spans.ts'
import type { RemovalRule } from '../records/removal-rules.ts'
import { startHousekeeping } from '../server/housekeeping.ts'
import { newLogger } from '../server/log.ts'
import type { TestApp } from './helpers.ts'

/** Runs the rules of one schedule. Returns the number of removed rows by table. */
export async function runHousekeeping(
  { db, config }: TestApp,
  every: RemovalRule['every'],
  now: () => Date = () => new Date(),
): Promise<Record<string, number>> {
  const removed: Record<string, number> = {}
  const { promise: ended, resolve: onRun, reject } = Promise.withResolvers<void>()
  const log = newLogger('warn', { write: (line) => reject(new Error(line)) })
  const removals = {
    onRemoved(table: string, rows: number) {
      removed[table] = (removed[table] ?? 0) + rows
    },
    onRun: () => onRun(),
  }
  const clock = { now, findDeletionTime: async () => new DeletionTime(now()) }
  const housekeeping = startHousekeeping(every, { db, config, clock, log, removals })
  housekeeping.wake()
  await ended
  await housekeeping.stop()
  return removed
}
