/** The SQLite file returns the space of deleted rows to the disk. */
import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import sqlite3 from 'sqlite3'
import { v7 as uuidv7 } from 'uuid'
import { expect, test } from 'vitest'
import type { Db } from '../../records/database/open.ts'
import { startApp, until } from '../helpers.ts'
import { newMuster } from './muster.ts'

const DAY_MS = 86_400_000
const MEGABYTE = 1_000_000
/** A value of `auto_vacuum`. */
const INCREMENTAL = 2

const sizeOf = async (dataDir: string): Promise<number> =>
  (await stat(join(dataDir, 'muster.sqlite'))).size

/** Runs a query without the settings that the service makes for its connections. Returns the first
 *  row. */
function query(file: string, text: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const database = new sqlite3.Database(file)
    database.get(text, (error, row) => (error ? reject(error) : resolve(row)))
    database.close()
  })
}

/** Inserts 20 MB of entries of the audit log. The service deletes them, because they are older than
 *  400 days. */
async function insertOldEntries({ write }: Db, accountId: string): Promise<void> {
  const createdAt = Date.now() - 401 * DAY_MS
  const entries = Array.from({ length: 1_000 }, () => ({
    id: uuidv7({ msecs: createdAt }),
    account_id: accountId,
    user_name: 'Mara',
    action: 'account.renamed',
    target_type: 'account',
    target_id: randomUUID(),
    target_name: 'Northwind',
    details: JSON.stringify({ text: 'x'.repeat(20_000) }),
    created_at: createdAt,
  }))
  await write.batchInsert('audit_log', entries, 50)
}

test('a new file and its backup return the space of removed rows', async () => {
  await using muster = await newMuster()
  const { dataDir } = muster
  const environment = { DATA_DIR: dataDir }
  const database = { environment, [Symbol.asyncDispose]: async () => undefined }
  {
    await using app = await startApp({ database })
    const { accountId } = await app.newAccount()
    await insertOldEntries(app.db, accountId)
  }
  expect(await sizeOf(dataDir)).toBeGreaterThan(20 * MEGABYTE)
  {
    await using _app = await startApp({ database, role: 'all' })
    await until('the file is small', async () => (await sizeOf(dataDir)) < 3 * MEGABYTE)
  }
  const file = join(dataDir, 'muster.sqlite')
  expect(await query(file, 'pragma auto_vacuum')).toEqual({ auto_vacuum: INCREMENTAL })
  const backup = join(dataDir, 'backup.sqlite')
  await muster.json(['backup', backup])
  expect(await query(backup, 'pragma auto_vacuum')).toEqual({ auto_vacuum: INCREMENTAL })
})
