/** Opens the database of the installation for a command. */
import { statSync } from 'node:fs'
import { Refused } from '../errors.ts'
import { Clock } from '../records/database/clock.ts'
import {
  hasMigrationsTable,
  listPendingMigrations,
  migrate,
  withSetupLock,
} from '../records/database/migrate.ts'
import { type Db, openDatabase, sqliteFile, withoutPooler } from '../records/database/open.ts'
import { useClockForIds } from '../records/ids.ts'
import { countNoun } from '../records/references.ts'
import type { Config } from '../server/config.ts'

export interface CommandDatabase {
  db: Db
  config: Config
  /** The time of the database. */
  now: () => Date
  /** The migrations that were applied just now, before the command's work. */
  appliedMigrations: string[]
}

/** What a command does with the schema. Only `migrate` creates a database, and runs pending
 *  migrations. `current` (the default) needs a database of this version, `any` also works on an older
 *  one. */
export type SchemaUse = 'migrate' | 'current' | 'any'

type Place = Config['database']

/** Runs `work` on the database, and closes it. Throws `Refused` where there is no database, or where
 *  the schema is not the one that `schema` needs. */
export async function withInstallation<T>(
  config: Config,
  schema: SchemaUse,
  work: (database: CommandDatabase) => Promise<T>,
): Promise<T> {
  const place = withoutPooler(config.database)
  // To open a missing file would create it.
  if (schema !== 'migrate' && 'dataDir' in place && !hasSqliteDatabase(place.dataDir))
    throw missingDatabase(place)
  const db = openDatabase(place)
  try {
    const appliedMigrations = await prepareSchema(db, place, schema)
    const { now } = await Clock.open(db)
    useClockForIds(now)
    return await work({ db, config, now, appliedMigrations })
  } finally {
    await db.close()
  }
}

/** An empty file is no database: SQLite would write into it when it is opened. */
export function hasSqliteDatabase(dataDir: string): boolean {
  return (statSync(sqliteFile(dataDir), { throwIfNoEntry: false })?.size ?? 0) > 0
}

/** Returns the names of the migrations that it ran. */
async function prepareSchema(db: Db, place: Place, schema: SchemaUse): Promise<string[]> {
  if (schema === 'migrate') return withSetupLock(place, () => migrate(db))
  if (!(await hasMigrationsTable(db))) throw missingDatabase(place)
  const pending = schema === 'current' ? await listPendingMigrations(db) : []
  if (pending.length === 0) return []
  throw new Refused(
    `The database in ${describePlace(place)} is older than this version: it lacks ` +
      `${countNoun(pending.length, 'migration')}. Back it up, then run:  muster migrate`,
  )
}

function missingDatabase(place: Place): Refused {
  return new Refused(
    `There is no database of Muster in ${describePlace(place)}. Set DATA_DIR or DATABASE_URL as the service has it, ` +
      'or name the file with its settings:  muster --config FILE …\n' +
      'To create a new database, run:  muster serve',
  )
}

/** The folder, or the URL without its password. */
function describePlace(place: Place): string {
  if ('dataDir' in place) return place.dataDir
  return place.databaseUrl.replace(/\?.*$/s, '').replace(/(:\/\/[^/@:]*):[^/]*@/, '$1@')
}
