import { link, open, rm } from 'node:fs/promises'
import { Refused } from '../../errors.ts'
import { errorCode } from './errors.ts'
import type { Db } from './open.ts'

/** Copies the SQLite database, as of one moment, to a new file; returns its size in bytes. Readers and writers go on meanwhile.
 *  The file appears whole, on disk, or not at all. Throws `Refused` when there is one of that name or it cannot be written. */
export async function writeBackup(db: Db, file: string): Promise<number> {
  const draft = `${file}.${process.pid}.partial`
  try {
    // Made empty first, which VACUUM INTO accepts: so nobody else can read the copy while it grows.
    const made = await open(draft, 'wx', 0o600)
    await made.close()
    await db.write.raw('vacuum into ?', [draft])
    const copy = await open(draft, 'r+')
    await copy.sync()
    const { size } = await copy.stat()
    await copy.close()
    await link(draft, file)
    return size
  } catch (error) {
    if (errorCode(error) === 'EEXIST')
      throw new Refused(`${file} exists already, and is left alone`, { cause: error })
    if (errorCode(error) === 'ENOENT')
      throw new Refused(`${file} cannot be written: its folder does not exist`, { cause: error })
    if (['EACCES', 'EROFS', 'EISDIR', 'ENOTDIR'].includes(errorCode(error)))
      throw new Refused(`${file} cannot be written: ${(error as Error).message}`, { cause: error })
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}
