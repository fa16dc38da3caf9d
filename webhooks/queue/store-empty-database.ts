/** `npm run store-empty-database` stores the database of empty-database.ts again. Run it after an
 *  update of PGlite or pg-boss. */
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { PGlite } from '@electric-sql/pglite'
import { fromPglite, PgBoss } from 'pg-boss'
import { EMPTY_DATABASE, START_OPTIONS } from './empty-database.ts'

/** WAL segments of 1 MB: a checkpoint removes only whole segments. */
const INITDB_PARAMS = ['--wal-segsize=1']

/** Removes all databases but `template1`, and shrinks the catalogs and the WAL. */
const REDUCE = `
  drop database postgres;
  update pg_database set datistemplate = false where datname = 'template0';
  drop database template0;
  vacuum full;
  checkpoint`

export async function createEmptyDatabase(): Promise<PGlite> {
  const database = await PGlite.create({ ...START_OPTIONS, initDbStartParams: INITDB_PARAMS })
  const boss = new PgBoss({
    db: fromPglite(database),
    backend: 'pglite',
    schedule: false,
    supervise: false,
  })
  await boss.start()
  await boss.stop({ graceful: false })
  for (const statement of REDUCE.split(';')) await database.exec(statement)
  return database
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const database = await createEmptyDatabase()
  await writeFile(EMPTY_DATABASE, await (await database.dumpDataDir('gzip')).bytes())
  await database.close()
}
