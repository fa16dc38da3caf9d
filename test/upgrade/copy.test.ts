/** `muster copy`: the move from SQLite to PostgreSQL. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import type { Db } from '../../records/database/open.ts'
import { readExpectedSchema } from '../../records/database/schema.ts'
import { type Muster, newAccount, newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { newDatabase, type TestDatabase, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { readCounts } from '../records/record-counts.ts'
import { databaseOptions, withDb } from './muster-database.ts'
import { ENVIRONMENT, populate, startOn } from './populate.ts'
import { expectArrival, listUndelivered } from './undelivered.ts'

/** Each database has its own rows in these. */
const NOT_COPIED = ['migrations', 'write_checks', 'leases', 'record_counts']
/** So many that the test can kill a copy before its end. */
const MANY_ROWS = 20_000

const urlOf = ({ environment }: TestDatabase): string =>
  'DATABASE_URL' in environment ? environment.DATABASE_URL : ''

/** All copied rows by table, in a form that both databases share. */
async function readCopiedRows({ read }: Db): Promise<Record<string, string[]>> {
  const schema = await readExpectedSchema('sqlite')
  const rows: Record<string, string[]> = {}
  for (const [table, { columns }] of Object.entries(schema).sort()) {
    if (NOT_COPIED.includes(table)) continue
    const names = Object.keys(columns)
      // Null in the copy, whose queue is empty.
      .filter((name) => name !== 'queued_at')
      .sort()
    const found: Record<string, unknown>[] = await read(table).select(names)
    rows[table] = found
      .map((row) => JSON.stringify(names.map((name) => toSharedForm(row[name]))))
      .sort()
  }
  return rows
}

function toSharedForm(value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value)
  // PostgreSQL stores a duration as a 4-byte number.
  if (typeof value === 'number' && !Number.isInteger(value)) return value.toPrecision(5)
  return Buffer.isBuffer(value) ? value.toString('hex') : value
}

const hasNoAccounts = (database: TestDatabase): Promise<boolean> =>
  withDb(databaseOptions(database), async ({ read }) => {
    if (!(await read.schema.hasTable('accounts'))) return true
    return (await read('accounts')).length === 0
  })

const refused = (message: string) => ({ status: 1, stderr: expect.stringContaining(message) })

describe.skipIf(inject('database') !== 'postgres')('copy', () => {
  test('the copy has equal rows, and a service on it delivers what was undelivered', {
    timeout: 180_000,
  }, async () => {
    await using source = await newDatabase('sqlite')
    await using target = await newDatabase()
    await using receiver = await startReceiver()
    await populate(source)
    const undelivered = await withDb(databaseOptions(source), async (db) => {
      await db.write('webhooks').update({ url: receiver.url })
      // Makes the second attempts due now. They are scheduled some minutes later.
      await db
        .write('deliveries')
        .whereNotNull('next_attempt_at')
        .update({ next_attempt_at: db.write.ref('created_at') })
      return listUndelivered({ db })
    })
    expect(undelivered.length).toBeGreaterThan(5)
    await using muster = await newMuster()
    const environment = { ...source.environment, SECRET_KEY: ENVIRONMENT.SECRET_KEY }
    const { rows, pending, retrying } = await muster.json(['copy', '--to', urlOf(target)], {
      environment,
    })
    expect(pending + retrying).toBe(undelivered.length)
    const before = await withDb(databaseOptions(source), readCopiedRows)
    const after = await withDb(databaseOptions(target), readCopiedRows)
    expect(after).toEqual(before)
    expect(await withDb(databaseOptions(target), readCounts)).toEqual(
      await withDb(databaseOptions(source), readCounts),
    )
    expect(rows).toEqual(
      Object.fromEntries(Object.entries(before).map(([table, { length }]) => [table, length])),
    )
    // Most tables have rows, so that the comparison proves something.
    expect(Object.values(before).filter(({ length }) => length > 0).length).toBeGreaterThan(15)

    await using app = await startOn(target, 'all')
    await expectArrival(app, undelivered, receiver)
  })

  test('a copy that is killed leaves no rows and can be repeated, but not once it has succeeded', async () => {
    await using target = await newDatabase()
    await using muster = await newMuster()
    const { account_id: accountId } = await newAccount(muster)
    await insertEvents(muster, accountId)
    const args = ['copy', '--to', '-']
    const input = urlOf(target)
    const killed = muster.start(args, { input })
    await until('some rows are copied', () => killed.output.stdout.includes('rows so far'))
    killed.process.kill('SIGKILL')
    await killed.ended
    expect(killed.output.stdout).not.toContain('Start the service')
    expect(await hasNoAccounts(target)).toBe(true)

    const { status, stdout } = await muster.run(args, { input })
    expect(status).toBe(0)
    expect(stdout).toMatch(
      /Copied 200\d\d rows of \d+ tables\. 0 deliveries are pending or retrying\./,
    )
    expect(await muster.run(args, { input })).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /^The target is not empty: the table \w+ has rows\. Name an empty database\.\n$/,
      ),
    })
  })

  test('a service on the copy needs the secret key of the source, which the copy does not print', async () => {
    await using target = await newDatabase()
    await using muster = await newMuster()
    await newAccount(muster)
    const { stdout } = await muster.run(['copy', '--to', urlOf(target)])
    expect(stdout).toContain(
      'Start the service with DATABASE_URL, and with SECRET_KEY set to the contents of DATA_DIR/secret.key.',
    )
    const key = (await readFile(join(muster.dataDir, 'secret.key'), 'utf8')).trim()
    expect(stdout).not.toContain(key)

    const environment = { DATABASE_URL: urlOf(target), PORT: '0' }
    const withOtherKey = { ...environment, SECRET_KEY: ENVIRONMENT.SECRET_KEY }
    expect(await muster.run(['serve'], { environment: withOtherKey })).toMatchObject(
      refused('SECRET_KEY is not the key'),
    )
    const { ready } = await startServing(muster, {
      environment: { ...environment, SECRET_KEY: key },
    })
    expect(ready.first_account).toBeNull()
  })

  test('a source without accounts: refused', async () => {
    await using target = await newDatabase()
    await using muster = await newMuster()
    await muster.run(['migrate'])
    expect(await muster.run(['copy', '--to', urlOf(target)])).toMatchObject(
      refused('The database in DATA_DIR has no accounts.'),
    )
    expect(await hasNoAccounts(target)).toBe(true)
  })

  test('a service is running on the source: refused', async () => {
    await using target = await newDatabase()
    await using muster = await newMuster()
    await startServing(muster)
    expect(await muster.run(['copy', '--to', urlOf(target)])).toMatchObject(
      refused(
        `Another muster serve is already running on DATA_DIR ${muster.dataDir}. Stop it first`,
      ),
    )
    expect(await hasNoAccounts(target)).toBe(true)
  })

  test('the source is PostgreSQL, or the target is not: refused', async () => {
    await using target = await newDatabase()
    await using muster = await newMuster()
    await newAccount(muster)
    const environment = { ...target.environment }
    expect(await muster.run(['copy', '--to', urlOf(target)], { environment })).toMatchObject(
      refused('DATABASE_URL is set, so the records are in PostgreSQL already.'),
    )
    expect(await muster.run(['copy', '--to', 'mysql://127.0.0.1/x'])).toMatchObject({ status: 2 })
    expect(await hasNoAccounts(target)).toBe(true)
  })

  test('the target has other tables: refused', async () => {
    await using target = await newDatabase()
    await using muster = await newMuster()
    await newAccount(muster)
    await withDb(databaseOptions(target), ({ write }) => write.raw('create table other (id int)'))
    expect(await muster.run(['copy', '--to', urlOf(target)])).toMatchObject(
      refused('The target is not empty: it has other tables, for example other.'),
    )
    expect(await hasNoAccounts(target)).toBe(true)
  })
})

async function insertEvents({ dataDir }: Muster, accountId: string): Promise<void> {
  await withDb({ dataDir }, ({ write }) =>
    write.raw(
      `insert into events (id, account_id, event_type, resource_type, resource_id, data, created_at)
       with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${MANY_ROWS})
       select printf('%08x-0000-7000-8000-000000000000', n), ?, 'task.created', 'task', ?, '[]', n
       from numbers`,
      [accountId, accountId],
    ),
  )
}
