/** Creates and breaks installations in embedded mode. */
import { chmod, chown, open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createFirstAccount } from '../../auth/first-account.ts'
import { migrate } from '../../records/database/migrate.ts'
import { openDatabase } from '../../records/database/open.ts'
import { readConfig } from '../../server/config.ts'
import { proveSecretKeys } from '../../webhooks/secret-keys.ts'
import { NOBODY } from '../postgres.ts'
import type { Ended, Muster } from './muster.ts'

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

/** Runs a command while the folder and the database file have these modes. Its user owns the folder
 *  and is not root: modes do not restrict root. */
export async function runAsOwner(
  { dataDir, run }: Muster,
  args: string[],
  { folderMode, databaseMode }: { folderMode: number; databaseMode?: number },
  environment: Record<string, string> = {},
): Promise<Ended> {
  const paths = [dataDir, ...(await readdir(dataDir)).map((name) => join(dataDir, name))]
  if (isRoot) for (const path of paths) await chown(path, NOBODY, NOBODY)
  if (databaseMode !== undefined) await chmod(join(dataDir, 'muster.sqlite'), databaseMode)
  await chmod(dataDir, folderMode)
  const ended = await run(args, { environment, userId: isRoot ? NOBODY : undefined })
  // So that the folder can be deleted.
  await chmod(dataDir, 0o755)
  return ended
}
