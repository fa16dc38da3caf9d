import { randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { link, open, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Refused } from '../../errors.ts'
import { findOrphan } from './damage.ts'
import { errorCode } from './errors.ts'
import type { Db } from './open.ts'
import { type Sql, select } from './statements.ts'

export interface Backup {
  byteSize: number
  accounts: number
  /** Epoch milliseconds. Null: there are no events. */
  newestEventAt: number | null
}

/** The names of the backups in a folder. They sort by time. */
const NAME = /^muster-\d{8}T\d{6}Z\.sqlite$/

/** The names of unfinished copies, and of the journals that SQLite writes beside them. */
const DRAFT_NAME = /\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.partial(-journal)?$/
/** A copy that was not written to for so long belongs to a killed process, not to one that checks it. */
const MAX_DRAFT_AGE_MS = 12 * 60 * 60 * 1_000

/** Copies a snapshot of the SQLite database to a new file, and checks the copy. Reads and writes
 *  continue. The file appears complete, checked and synced, or not at all. Throws `Refused` if the
 *  copy is damaged, the file exists, or its folder is missing or not writable. */
export async function writeBackup({ write }: Db, file: string): Promise<Backup> {
  const draft = `${file}.${randomUUID()}.partial`
  try {
    // VACUUM INTO accepts an empty file. The mode of this file keeps the backup private throughout.
    const empty = await open(draft, 'wx', 0o600)
    await empty.close()
    await deleteOldDrafts(dirname(file))
    await write.raw('vacuum into ?', [draft])
    await write.raw('attach ? as copy', [draft])
    const found = await checkCopy(write).finally(() => write.raw('detach copy'))
    const copy = await open(draft, 'r+')
    await copy.sync()
    const { size } = await copy.stat()
    await copy.close()
    await link(draft, file)
    return { byteSize: size, ...found }
  } catch (error) {
    throw toRefused(file, error) ?? error
  } finally {
    // Fails when the folder of `file` is a file. The error that was thrown before says so.
    await rm(draft, { force: true }).catch(() => undefined)
  }
}

/** The copy may be of an older version: it has accounts and events since the first release. */
async function checkCopy(sql: Sql): Promise<Omit<Backup, 'byteSize'>> {
  const [damage] = await select<{ integrity_check: string }>(
    sql,
    'pragma copy.integrity_check(1)',
    [],
  )
  const orphan = await findOrphan(sql, 'copy')
  if (damage?.integrity_check !== 'ok' || orphan !== undefined)
    throw new Refused(
      'The copy is damaged, so it was deleted: ' +
        `${orphan ?? damage?.integrity_check}. ` +
        'Keep your earlier backups, and check the database:  muster doctor',
    )
  const [found] = await select<{ accounts: number; newest: number | null }>(
    sql,
    `select (select count(*) from copy.accounts) as accounts,
       (select max(created_at) from copy.events) as newest`,
    [],
  )
  return { accounts: found?.accounts ?? 0, newestEventAt: found?.newest ?? null }
}

/** The name of a backup in a folder of backups. */
export function backupName(at: Date): string {
  return `muster-${at.toISOString().replace(/[-:]|\.\d+/g, '')}.sqlite`
}

/** Deletes all but the newest `keep` backups of the folder of `newest`, and returns the deleted files.
 *  Leaves files with other names alone. A name after that of `newest` is older: the clock was wrong. */
export async function deleteOldBackups(newest: string, keep: number): Promise<string[]> {
  const folder = dirname(newest)
  const names = (await readdir(folder)).filter((name) => NAME.test(name)).sort()
  const next = names.indexOf(basename(newest)) + 1
  const byAge = [...names.slice(next), ...names.slice(0, next)]
  const files = byAge.slice(0, -keep).map((name) => join(folder, name))
  // Another backup may delete them meanwhile.
  for (const file of files) await rm(file, { force: true })
  return files
}

/** Deletes the copies that killed processes have left in `folder`. */
async function deleteOldDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!DRAFT_NAME.test(name)) continue
    const draft = join(folder, name)
    // Another process may delete its own draft meanwhile.
    const writtenAt = statSync(draft, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
    if (Date.now() - writtenAt > MAX_DRAFT_AGE_MS) await rm(draft, { force: true })
  }
}

function toRefused(file: string, error: unknown): Refused | undefined {
  const code = errorCode(error)
  if (code === 'EEXIST')
    return new Refused(`${file} already exists. Choose another file name.`, { cause: error })
  if (code === 'ENOENT')
    return new Refused(`The folder of ${file} does not exist. Create it first.`, { cause: error })
  if (['EACCES', 'EROFS', 'EISDIR', 'ENOTDIR', 'ENOSPC', 'SQLITE_FULL'].includes(code))
    return new Refused(`${file} cannot be written: ${(error as Error).message}`, { cause: error })
  return undefined
}
