import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import sqlite3 from 'sqlite3'
import { Refused } from '../../errors.ts'
import { errorCode } from './errors.ts'
import { giveToFolderOwner } from './owner.ts'

export class FileLocked extends Refused {
  override name = 'FileLocked'
}

export interface FileLock {
  release(): Promise<void>
}

/** A lock between processes: an exclusive transaction on a SQLite file of its own. The lock ends
 *  with the process, even a killed one, so it is never stale. Waits up to `waitMs`, then throws
 *  `FileLocked`. `PRAGMA locking_mode` must stay NORMAL: with EXCLUSIVE, processes that wait keep
 *  a shared lock, and then none of them can begin the exclusive transaction. */
export async function acquireFileLock(file: string, waitMs: number): Promise<FileLock> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const database = await open(file)
  const close = (): Promise<void> => new Promise((resolve) => database.close(() => resolve()))
  try {
    await execute(database, `PRAGMA busy_timeout = ${Math.round(waitMs)}; BEGIN EXCLUSIVE`)
    giveToFolderOwner(file)
  } catch (error) {
    await close()
    if (errorCode(error) === 'SQLITE_BUSY')
      throw new FileLocked(`${file} is locked by another process`, { cause: error })
    throw error
  }
  return { release: close }
}

function open(file: string): Promise<sqlite3.Database> {
  return new Promise((resolve, reject) => {
    const database: sqlite3.Database = new sqlite3.Database(file, (error) =>
      error ? reject(error) : resolve(database),
    )
  })
}

function execute(database: sqlite3.Database, sql: string): Promise<void> {
  return new Promise((resolve, reject) => {
    database.exec(sql, (error) => (error ? reject(error) : resolve()))
  })
}
