/** The databases in test/upgrade/stored/: one of each release for SQLite and for PostgreSQL.
 *  `populate` has filled each database with the code of its release. */
import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import pg from 'pg'
import { newDatabase, type TestDatabase } from '../helpers.ts'

const DIRECTORY = new URL('./stored/', import.meta.url)

type Kind = 'sqlite' | 'postgres'

export function storedFile(release: string, kind: Kind): URL {
  return new URL(`${release}.${kind === 'sqlite' ? 'sqlite' : 'sql'}.gz`, DIRECTORY)
}

/** Oldest first. */
export function listStoredReleases(): string[] {
  const releases = readdirSync(DIRECTORY)
    .filter((name) => name.endsWith('.sqlite.gz'))
    .map((name) => name.replace('.sqlite.gz', ''))
  return releases.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
}

/** A new database with the contents of the stored one. */
export async function restore(release: string): Promise<TestDatabase> {
  const database = await newDatabase()
  const { environment } = database
  const kind = 'DATA_DIR' in environment ? 'sqlite' : 'postgres'
  const contents = await promisify(gunzip)(await readFile(storedFile(release, kind)))
  if ('DATA_DIR' in environment)
    await writeFile(join(environment.DATA_DIR, 'muster.sqlite'), contents)
  else await executeScript(environment.DATABASE_URL, contents.toString())
  return database
}

async function executeScript(databaseUrl: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
