/** Stores the two databases of a release in test/upgrade/stored/. Run this once for each release,
 *  with the code of the release: npm run store-databases -- 1.2.0 postgres://… The URL names an
 *  empty database on a PostgreSQL server of the same version as pg_dump. */
import { execFile } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { writeBackup } from '../../records/database/backup.ts'
import { openDatabase } from '../../records/database/open.ts'
import { newDatabase } from '../helpers.ts'
import { ENVIRONMENT, populate } from './populate.ts'
import { storedFile } from './stored-databases.ts'

const MAX_DUMP_BYTES = 50_000_000

async function storeSqlite(release: string): Promise<void> {
  await using database = await newDatabase('sqlite')
  await populate(database)
  const { DATA_DIR: dataDir } = database.environment as { DATA_DIR: string }
  const copy = join(dataDir, 'copy.sqlite')
  const db = openDatabase({ dataDir })
  await writeBackup(db, copy).finally(() => db.close())
  await store(release, 'sqlite', await readFile(copy))
  await rm(copy)
}

async function storePostgres(release: string, databaseUrl: string): Promise<void> {
  const environment = { DATABASE_URL: databaseUrl, SECRET_KEY: ENVIRONMENT.SECRET_KEY }
  await populate({ environment, [Symbol.asyncDispose]: async () => undefined })
  const { stdout } = await promisify(execFile)(
    'pg_dump',
    ['--inserts', '--no-owner', '--no-privileges', databaseUrl],
    { maxBuffer: MAX_DUMP_BYTES },
  )
  // Only psql understands lines that begin with a backslash.
  await store(release, 'postgres', Buffer.from(stdout.replaceAll(/^\\.*\n/gm, '')))
}

async function store(release: string, kind: 'sqlite' | 'postgres', contents: Buffer) {
  const file = storedFile(release, kind)
  await writeFile(file, await promisify(gzip)(contents, { level: 9 }), { flag: 'wx' })
  console.log(`Wrote ${file.pathname}`)
}

const [release, databaseUrl] = process.argv.slice(2)
if (release === undefined || databaseUrl === undefined)
  throw new Error('Name the release and the URL of an empty PostgreSQL database.')
await storeSqlite(release)
await storePostgres(release, databaseUrl)
