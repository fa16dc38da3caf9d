import { join } from 'node:path'
import { Refused } from '../errors.ts'
import { acquireFileLock, type FileLock, FileLocked } from '../records/database/lock.ts'

const LOCK_TIMEOUT_MS = 500

/** The lock that a service holds while it runs on the folder. Throws `Refused` with the remedy when a service
 *  runs. */
export async function acquireServeLock(dataDir: string, remedy: string): Promise<FileLock> {
  const lock = await tryServeLock(dataDir)
  if (lock === undefined)
    throw new Refused(`Another muster serve is already running on DATA_DIR ${dataDir}. ${remedy}`)
  return lock
}

/** Undefined while a service runs on the folder. */
export async function tryServeLock(dataDir: string): Promise<FileLock | undefined> {
  try {
    return await acquireFileLock(join(dataDir, 'serve.lock'), LOCK_TIMEOUT_MS)
  } catch (error) {
    if (error instanceof FileLocked) return undefined
    throw error
  }
}
