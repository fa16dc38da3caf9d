/** Looks for damaged pages in the background, and notes them in `db.storage`. */
import type { Logger } from 'pino'
import { findChecksumFailures, findDamagedTable } from '../records/database/damage.ts'
import type { Db } from '../records/database/open.ts'
import { DAY_MS } from '../records/time-units.ts'
import { type BackgroundWork, repeat } from '../runtime/run-loop.ts'

/** On SQLite, a check reads the whole file. On PostgreSQL, it reads one row. */
const EVERY_MS = { sqlite: DAY_MS, postgres: 10_000 }
/** The file is checked after the start, so that it does not delay the start. */
const FIRST_AFTER_MS = { sqlite: 10_000, postgres: 0 }

export function startDamageChecks(db: Db, log: Logger): BackgroundWork {
  const find = db.dialect === 'sqlite' ? newPageCheck(db) : newChecksumCheck(db)
  const checks = repeat(
    EVERY_MS[db.dialect],
    async (signal) => {
      const before = db.storage.damage
      db.storage.damage = await find(signal)
      if (db.storage.damage !== undefined && before === undefined)
        log.error(
          { damage: db.storage.damage },
          'The database has damaged pages. Restore a backup: see "MusterDatabaseDamaged" in docs/operations.md.',
        )
    },
    (error) => log.warn({ err: error }, 'The database could not be checked for damaged pages'),
  )
  setTimeout(checks.wake, FIRST_AFTER_MS[db.dialect]).unref()
  return checks
}

type Find = (signal: AbortSignal) => Promise<string | undefined>

/** A statement may have met damage that the check does not find. */
const newPageCheck =
  (db: Db): Find =>
  async (signal) =>
    (await findDamagedTable(db, signal)) ?? db.storage.damage

/** Failures before the start of this node do not count. A standby that becomes the primary may have
 *  counted some of pages that were repaired long ago. */
function newChecksumCheck(db: Db): Find {
  let startedAt: number | undefined
  return async () => {
    const { lastAt, now } = await findChecksumFailures(db)
    startedAt ??= now
    return lastAt !== null && lastAt >= startedAt
      ? `wrong checksum, read at ${new Date(lastAt).toISOString()}`
      : undefined
  }
}
