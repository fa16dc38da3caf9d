/** The last backup of the embedded database, in a file beside it. A restored database keeps the file
 *  of the installation, not an entry from before the backup. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { giveToFolderOwner } from './owner.ts'

export interface LastBackup {
  file: string
  /** Epoch milliseconds. The backup has all changes until then. */
  takenAt: number
}

const recordFile = (dataDir: string): string => join(dataDir, 'last-backup.json')

export async function recordBackup(dataDir: string, backup: LastBackup): Promise<void> {
  const draft = `${recordFile(dataDir)}.${randomUUID()}`
  await writeFile(draft, JSON.stringify(backup), { mode: 0o600, flag: 'wx', flush: true })
  giveToFolderOwner(draft)
  await rename(draft, recordFile(dataDir))
}

export async function findLastBackup(dataDir: string): Promise<LastBackup | undefined> {
  const file = recordFile(dataDir)
  return existsSync(file) ? JSON.parse(await readFile(file, 'utf8')) : undefined
}
