/** The empty database that embedded PostgreSQL starts from. It is stored, because creating one takes seconds
 *  and half a gigabyte of memory. `npm run store-empty-database` stores it again, for another version of PGlite. */
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { PGlite } from '@electric-sql/pglite'

export const EMPTY_DATABASE = new URL('./empty-database.tar.gz', import.meta.url)

/** The database files are in memory too: a large cache would store the queue twice. Nothing is ever
 *  recovered from the WAL, so as little as possible is written to it, and none of it is reused. */
const SERVER_SETTINGS = {
  shared_buffers: '16MB',
  wal_level: 'minimal',
  wal_recycle: 'off',
  max_wal_senders: '0',
  full_page_writes: 'off',
}

export const START_OPTIONS = {
  // The only database that PostgreSQL needs. Each other one has another copy of the system catalogs.
  database: 'template1',
  startParams: [
    ...PGlite.defaultStartParams,
    ...Object.entries(SERVER_SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ],
}

/** Sizes in MB. A checkpoint removes whole segments. */
const INITDB_PARAMS = ['--wal-segsize=1']

/** Without the other databases, and with catalogs of the smallest size. */
const REDUCE = `
  drop database postgres;
  update pg_database set datistemplate = false where datname = 'template0';
  drop database template0;
  vacuum full;
  checkpoint`

export async function createEmptyDatabase(): Promise<PGlite> {
  const database = await PGlite.create({ ...START_OPTIONS, initDbStartParams: INITDB_PARAMS })
  for (const statement of REDUCE.split(';')) await database.exec(statement)
  return database
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const database = await createEmptyDatabase()
  await writeFile(EMPTY_DATABASE, await (await database.dumpDataDir('gzip')).bytes())
  await database.close()
}
