import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import sqlite3 from 'sqlite3'
import { errorCode } from './errors.ts'

/** Somebody else holds the lock. */
export class Locked extends Error {
  override name = 'Locked'
}

/** Takes a lock between processes, held until `release` or until the process ends in whatever way, so it is never stale:
 *  an exclusive transaction on a SQLite file of its own. Waits up to `waitMs`, then throws `Locked`. */
export async function acquireFileLock(
  file: string,
  waitMs: number,
): Promise<{ release(): Promise<void> }> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const database = await new Promise<sqlite3.Database>((resolve, reject) => {
    const opened: sqlite3.Database = new sqlite3.Database(file, (error) =>
      error ? reject(error) : resolve(opened),
    )
  })
  const close = (): Promise<void> => new Promise((resolve) => database.close(() => resolve()))
  try {
    await new Promise<void>((resolve, reject) => {
      database.exec(
        `PRAGMA busy_timeout = ${Math.round(waitMs)}; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE`,
        (error) => (error ? reject(error) : resolve()),
      )
    })
  } catch (error) {
    await close()
    if (errorCode(error) === 'SQLITE_BUSY')
      throw new Locked(`${file} is locked by another process`, { cause: error })
    throw error
  }
  return { release: close }
}
