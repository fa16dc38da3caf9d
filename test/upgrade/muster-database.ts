/** Commands on a new database of the project's kind, and SQL on the same database. */
import { type DatabaseOptions, openDatabase } from '../../records/database/open.ts'
import { type Ended, newMuster, type Started } from '../cli/muster.ts'
import { type Ready, SERVE_ENVIRONMENT, startServing } from '../cli/serving.ts'
import { newDatabase, type TestDatabase } from '../helpers.ts'

export interface MusterDatabase extends AsyncDisposable {
  run(...args: string[]): Promise<Ended>
  serve(): Promise<Started & { ready: Ready }>
  /** Runs SQL on a connection of its own. */
  execute(...statements: string[]): Promise<void>
}

export function databaseOptions({ environment }: TestDatabase): DatabaseOptions {
  return 'DATA_DIR' in environment
    ? { dataDir: environment.DATA_DIR }
    : { databaseUrl: environment.DATABASE_URL }
}

export async function newMusterDatabase(): Promise<MusterDatabase> {
  const muster = await newMuster()
  const database = await newDatabase()
  const environment = { ...SERVE_ENVIRONMENT, ...database.environment }
  return {
    run: (...args) => muster.run(args, { environment }),
    serve: () => startServing(muster, { environment }),
    async execute(...statements) {
      const db = openDatabase(databaseOptions(database))
      try {
        for (const statement of statements) await db.write.raw(statement)
      } finally {
        await db.close()
      }
    },
    async [Symbol.asyncDispose]() {
      await muster[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}
