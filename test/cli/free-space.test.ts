/** The SQLite file returns the space of deleted rows to the disk. The file of an earlier version
 *  does not, until `muster migrate` converts it. */
import { randomUUID } from 'node:crypto'
import { open, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import sqlite3 from 'sqlite3'
import { v7 as uuidv7 } from 'uuid'
import { expect, test } from 'vitest'
import type { Db } from '../../records/database/open.ts'
import { startApp, until } from '../helpers.ts'
import { type Muster, newMuster } from './muster.ts'
import { startServing } from './serving.ts'

const DAY_MS = 86_400_000
const MEGABYTE = 1_000_000
const PAGE_BYTES = 4_096
/** Values of `auto_vacuum`. */
const NONE = 0
const INCREMENTAL = 2

const sizeOf = async (dataDir: string): Promise<number> =>
  (await stat(join(dataDir, 'muster.sqlite'))).size

/** Runs statements without the settings that the service makes for its connections. Returns the
 *  first row of the last statement. */
function query(file: string, ...statements: string[]): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const database = new sqlite3.Database(file)
    database.serialize()
    const last = statements.at(-1) ?? ''
    for (const statement of statements.slice(0, -1))
      database.exec(statement, (error) => error && reject(error))
    database.get(last, (error, row) => (error ? reject(error) : resolve(row)))
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

test('migrate converts the file of an earlier version, but not while a service runs', async () => {
  await using muster = await newMuster()
  const file = await newEarlierFile(muster)
  const serving = await startServing(muster)
  expect(await muster.run(['migrate'])).toEqual({
    status: 0,
    stdout:
      'The tables are up to date.\nThe file does not return the space of deleted rows yet. ' +
      'To convert it, stop muster serve and run muster migrate again.\n',
    stderr: '',
  })
  expect(await muster.json(['migrate'])).toEqual({ migrations: [], returns_free_space: false })
  serving.process.kill()
  expect((await serving.ended).stderr).toContain(
    'stop the service and run \\"muster migrate\\" once',
  )

  const { stdout } = await muster.run(['migrate'])
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(/^Converting the file of \d+ MB, so that it returns free space\.$/),
    'The tables are up to date.',
    expect.stringMatching(/^The file was converted and has \d+ MB now\./),
    '',
  ])
  expect(await query(file, 'pragma auto_vacuum')).toEqual({ auto_vacuum: INCREMENTAL })
  expect(await muster.json(['migrate'])).toEqual({ migrations: [], returns_free_space: true })
  const { ready } = await startServing(muster)
  expect((await fetch(`${ready.url}/readyz`)).status).toBe(200)
})

test('migrate does not convert a file without enough free space on the disk', async () => {
  await using muster = await newMuster()
  const file = await newEarlierFile(muster)
  await claimHalfOfTheDisk(file)
  const { status, stdout } = await muster.run(['migrate'])
  expect(status).toBe(0)
  expect(stdout).toMatch(
    /^The tables are up to date\.\nThe file .* Its conversion needs [\d.]+ [MG]B of free space in DATA_DIR \S+, which has [\d.]+ [MG]B\. Make room and run muster migrate again\.\n$/,
  )
  expect(await query(file, 'pragma auto_vacuum')).toEqual({ auto_vacuum: NONE })
})

/** A file as earlier versions created it. */
async function newEarlierFile(muster: Muster): Promise<string> {
  await muster.run(['migrate'])
  const file = join(muster.dataDir, 'muster.sqlite')
  await query(file, 'pragma auto_vacuum = none', 'vacuum')
  expect(await query(file, 'pragma auto_vacuum')).toEqual({ auto_vacuum: NONE })
  return file
}

/** Makes the file larger than half of the free space, with pages that take no space on the disk. */
async function claimHalfOfTheDisk(file: string): Promise<void> {
  const { bavail, bsize } = await statfs(file)
  const pages = Math.ceil((bavail * bsize) / 2 / PAGE_BYTES) + 1
  const header = Buffer.alloc(4)
  header.writeUInt32BE(pages)
  const handle = await open(file, 'r+')
  await handle.truncate(pages * PAGE_BYTES)
  // sqlite.org/fileformat2.html: the number of pages.
  await handle.write(header, 0, header.length, 28)
  await handle.close()
}
