/** Installations that are broken. */
import { spawn } from 'node:child_process'
import { chmod, chown, open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createFirstAccount } from '../../auth/first-account.ts'
import { migrate } from '../../records/database/migrate.ts'
import { openDatabase } from '../../records/database/open.ts'
import { readConfig } from '../../server/config.ts'
import { proveSecretKeys } from '../../webhooks/secret-keys.ts'
import { BIN, type Ended, type Muster } from './muster.ts'

const NOBODY = 65_534
const isRoot = process.getuid?.() === 0
const PAGE_BYTES = 4096

/** Creates the database, the key and an account, as the first start does. Returns the ID of the
 *  account. */
export async function install({ dataDir }: Muster): Promise<string> {
  const { database, secretKeys } = readConfig({ DATA_DIR: dataDir })
  const db = openDatabase(database)
  try {
    await migrate(db)
    await proveSecretKeys(db, secretKeys)
    const first = await createFirstAccount(db, new Date())
    if (first === undefined) throw new Error('The folder had an installation before')
    return first.accountId
  } finally {
    await db.close()
  }
}

/** Overwrites the pages of the database file from `first` on, all by default. */
export async function damageFile({ dataDir }: Muster, first = 0): Promise<void> {
  const path = join(dataDir, 'muster.sqlite')
  const { size } = await stat(path)
  const file = await open(path, 'r+')
  const bytes = Buffer.alloc(size - first * PAGE_BYTES, 0x5a)
  await file.write(bytes, 0, bytes.length, first * PAGE_BYTES)
  await file.close()
}

export async function execute({ dataDir }: Muster, sql: string): Promise<undefined> {
  const db = openDatabase({ dataDir })
  await db.write.raw(sql)
  await db.close()
}

/** Runs a command as the owner of the folder and its files, who is not root. Root may write
 *  everything. */
export async function runAsOwner(
  { dataDir }: Muster,
  args: string[],
  { folderMode, databaseMode }: { folderMode: number; databaseMode?: number },
  environment: Record<string, string> = {},
): Promise<Ended> {
  const paths = [dataDir, ...(await readdir(dataDir)).map((name) => join(dataDir, name))]
  if (isRoot) for (const path of paths) await chown(path, NOBODY, NOBODY)
  if (databaseMode !== undefined) await chmod(join(dataDir, 'muster.sqlite'), databaseMode)
  await chmod(dataDir, folderMode)
  const child = spawn(process.execPath, [BIN, ...args], {
    env: { ...environment, DATA_DIR: dataDir },
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output.stderr += text
  })
  const ended = await new Promise<Ended>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, ...output }))
  })
  await chmod(dataDir, 0o755)
  return ended
}
