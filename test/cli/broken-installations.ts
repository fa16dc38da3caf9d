/** Creates and breaks installations in embedded mode. */
import { chmod, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createFirstAccount } from '../../auth/first-account.ts'
import { migrate } from '../../records/database/migrate.ts'
import { openDatabase } from '../../records/database/open.ts'
import { readConfig } from '../../server/config.ts'
import { proveSecretKeys } from '../../webhooks/secret-keys.ts'
import type { Ended, Muster } from './muster.ts'

/** Root without the right to pass over the modes of files. Another user could not read a repository
 *  in a folder of root. */
const BOUND_BY_MODES = ['setpriv', '--bounding-set', '-dac_override,-dac_read_search']
const isRoot = process.getuid?.() === 0
const PAGE_BYTES = 4096

/** Creates the database, the secret key and an account, as the first start does. Returns the ID of
 *  the account. */
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

/** Overwrites the pages of the database file from `firstPage` on. Pages count from 0. */
export async function damageFile({ dataDir }: Muster, firstPage = 0): Promise<void> {
  const path = join(dataDir, 'muster.sqlite')
  const { size } = await stat(path)
  const file = await open(path, 'r+')
  const start = firstPage * PAGE_BYTES
  const bytes = Buffer.alloc(size - start, 0x5a)
  await file.write(bytes, 0, bytes.length, start)
  await file.close()
}

export async function execute({ dataDir }: Muster, sql: string): Promise<void> {
  const db = openDatabase({ dataDir })
  await db.write.raw(sql)
  await db.close()
}

/** Runs a command while the folder and the database file have these modes. */
export async function runWithModes(
  { dataDir, run }: Muster,
  args: string[],
  { folderMode, databaseMode }: { folderMode: number; databaseMode?: number },
  environment: Record<string, string> = {},
): Promise<Ended> {
  if (databaseMode !== undefined) await chmod(join(dataDir, 'muster.sqlite'), databaseMode)
  await chmod(dataDir, folderMode)
  const ended = await run(args, { environment, wrapper: isRoot ? BOUND_BY_MODES : [] })
  // So that the folder can be deleted.
  await chmod(dataDir, 0o755)
  return ended
}
