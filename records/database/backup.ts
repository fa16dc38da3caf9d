import { randomUUID } from 'node:crypto'
import { link, open, rm } from 'node:fs/promises'
import { Refused } from '../../errors.ts'
import { errorCode } from './errors.ts'
import type { Db } from './open.ts'

/** Copies a snapshot of the SQLite database to a new file and returns its size in bytes. Reads and
 *  writes continue. The file appears complete and synced, or not at all. Throws `Refused` if the
 *  file exists, or its folder is missing or not writable. */
export async function writeBackup(db: Db, file: string): Promise<number> {
  const draft = `${file}.${randomUUID()}.partial`
  try {
    // VACUUM INTO accepts an empty file. The mode of this file keeps the backup private throughout.
    const empty = await open(draft, 'wx', 0o600)
    await empty.close()
    await db.write.raw('vacuum into ?', [draft])
    const copy = await open(draft, 'r+')
    await copy.sync()
    const { size } = await copy.stat()
    await copy.close()
    await link(draft, file)
    return size
  } catch (error) {
    throw toRefused(file, error) ?? error
  } finally {
    await rm(draft, { force: true })
  }
}

function toRefused(file: string, error: unknown): Refused | undefined {
  const code = errorCode(error)
  if (code === 'EEXIST')
    return new Refused(`${file} already exists. Choose another file name.`, { cause: error })
  if (code === 'ENOENT')
    return new Refused(`The folder of ${file} does not exist. Create it first.`, { cause: error })
  if (['EACCES', 'EROFS', 'EISDIR', 'ENOTDIR'].includes(code))
    return new Refused(`${file} cannot be written: ${(error as Error).message}`, { cause: error })
  return undefined
}
