/** The files in records/migrations/. A file that has landed must not change: its checksum is in
 *  records/migration-checksums.json. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { Knex } from 'knex'
import { Refused } from '../../errors.ts'

const DIRECTORY = new URL('../migrations/', import.meta.url)
const CHECKSUMS = new URL('../migration-checksums.json', import.meta.url)
/** The name of a migration begins with its time. The other files hold what migrations share. */
const IS_MIGRATION = /^\d{12}_/

export interface Migration {
  /** The name of its file. */
  name: string
  checksum: string
  load(): Promise<MigrationModule>
}

interface MigrationModule {
  up(knex: Knex): Promise<void>
  /** PostgreSQL: runs outside of a transaction, to create indexes while other nodes write. `up` runs
   *  again after it was interrupted. */
  isConcurrent?: boolean
}

/** SHA-256 by the name of the file. */
type Checksums = Record<string, string>

/** The migrations in the order in which they run. Accepts a new migration that has no checksum yet.
 *  Throws `Refused` when a file with a checksum has changed or is missing. */
export async function readMigrations(): Promise<Migration[]> {
  const files = await readFileChecksums()
  for (const [name, checksum] of Object.entries(await readCommittedChecksums()))
    if (files[name] !== checksum)
      throw new Refused(
        `records/migrations/${name} ${name in files ? 'has changed since it landed' : 'is missing'}. ` +
          'Restore the file, or install this version of Muster again. To change the tables, add a migration.',
      )
  return Object.entries(files)
    .filter(([name]) => IS_MIGRATION.test(name))
    .map(([name, checksum]) => ({
      name,
      checksum,
      load: () => import(new URL(name, DIRECTORY).href),
    }))
}

/** The checksums of all files in the folder, by name. */
export async function readFileChecksums(): Promise<Checksums> {
  const names = (await readdir(DIRECTORY)).filter((name) => name.endsWith('.ts')).sort()
  const checksums = names.map(async (name) => [name, await checksumOf(new URL(name, DIRECTORY))])
  return Object.fromEntries(await Promise.all(checksums))
}

export async function readCommittedChecksums(): Promise<Checksums> {
  return JSON.parse(await readFile(CHECKSUMS, 'utf8'))
}

/** The line endings of Windows do not change the checksum. */
async function checksumOf(file: URL): Promise<string> {
  const text = (await readFile(file, 'utf8')).replaceAll('\r\n', '\n')
  return createHash('sha256').update(text).digest('hex')
}
