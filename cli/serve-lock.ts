import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Refused } from '../errors.ts'
import { acquireFileLock, type FileLock, FileLocked } from '../records/database/lock.ts'

const LOCK_TIMEOUT_MS = 500

/** Acquires the lock that `muster serve` holds while it runs on `dataDir`. Throws `Refused` with
 *  the remedy when a service runs there. */
export async function acquireServeLock(dataDir: string, remedy: string): Promise<FileLock> {
  const lock = await tryServeLock(dataDir)
  if (lock === undefined)
    throw new Refused(`Another muster serve is already running on DATA_DIR ${dataDir}. ${remedy}`)
  return lock
}

/** As `acquireServeLock`, but returns undefined when a service runs on `dataDir`. */
async function tryServeLock(
  dataDir: string,
  timeoutMs = LOCK_TIMEOUT_MS,
): Promise<FileLock | undefined> {
  try {
    return await acquireFileLock(lockFile(dataDir), timeoutMs)
  } catch (error) {
    if (error instanceof FileLocked) return undefined
    throw error
  }
}

export async function isServing(dataDir: string): Promise<boolean> {
  // To lock a missing file would create it.
  if (!existsSync(lockFile(dataDir))) return false
  const lock = await tryServeLock(dataDir, 0)
  await lock?.release()
  return lock === undefined
}

const lockFile = (dataDir: string): string => join(dataDir, 'serve.lock')
