/** Commands on a new database, SQLite or PostgreSQL as in the other tests of the run, and SQL on
 *  the same database. */
import { readFile } from 'node:fs/promises'
import {
  type DatabaseOptions,
  type Db,
  openDatabase,
  sqliteFile,
} from '../../records/database/open.ts'
import { readSchema } from '../../records/database/schema.ts'
import { type Ended, newMuster, type Started } from '../cli/muster.ts'
import { type Ready, SERVE_ENVIRONMENT, startServing } from '../cli/serving.ts'
import { newDatabase, type TestDatabase } from '../helpers.ts'

export interface MusterDatabase extends AsyncDisposable {
  run(...args: string[]): Promise<Ended>
  serve(): Promise<Started & { ready: Ready }>
  /** Runs SQL on a connection of its own. */
  execute(...statements: string[]): Promise<void>
  /** SQLite: the bytes of the file. PostgreSQL: the schema. */
  readContents(): Promise<unknown>
}

export function databaseOptions({ environment }: TestDatabase): DatabaseOptions {
  return 'DATA_DIR' in environment
    ? { dataDir: environment.DATA_DIR }
    : { databaseUrl: environment.DATABASE_URL }
}

/** Calls `work` with a connection of its own, and closes it. */
export async function withDb<T>(
  options: DatabaseOptions,
  work: (db: Db) => Promise<T>,
): Promise<T> {
  const db = openDatabase(options)
  return work(db).finally(() => db.close())
}

export async function newMusterDatabase(): Promise<MusterDatabase> {
  const muster = await newMuster()
  const database = await newDatabase()
  const environment = { ...SERVE_ENVIRONMENT, ...database.environment }
  return {
    run: (...args) => muster.run(args, { environment }),
    serve: () => startServing(muster, { environment }),
    async execute(...statements) {
      await withDb(databaseOptions(database), async ({ write }) => {
        for (const statement of statements) await write.raw(statement)
      })
    },
    readContents: () =>
      'DATA_DIR' in database.environment
        ? readFile(sqliteFile(database.environment.DATA_DIR))
        : withDb(databaseOptions(database), readSchema),
    async [Symbol.asyncDispose]() {
      await muster[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}
