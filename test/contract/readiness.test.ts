/** /readyz while the database accepts no writes. */
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { startApp, type TestApp, until } from '../helpers.ts'

async function findReasons(app: TestApp): Promise<string[]> {
  return JSON.parse((await app.call('GET', '/readyz')).text).reasons ?? []
}

/** Makes all connections of the database read-only, or writable again. */
async function setReadOnly(app: TestApp, isReadOnly: boolean): Promise<void> {
  const value = isReadOnly ? 'on' : 'off'
  const { environment } = app.database
  if (!('DATABASE_URL' in environment)) {
    await app.db.write.raw(`pragma query_only = ${value}`)
    return
  }
  const name = new URL(environment.DATABASE_URL).pathname.slice(1)
  const admin = new pg.Client({ connectionString: inject('postgresUrl') })
  await admin.connect()
  await admin.query(`alter database ${name} set default_transaction_read_only = ${value}`)
  // New connections have the setting.
  await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
    name,
  ])
  await admin.end()
}

test('a read-only database: 503 without any request, and 200 once it accepts writes', async () => {
  await using app = await startApp()
  expect(await findReasons(app)).toEqual([])
  await setReadOnly(app, true)
  await until('the node is not ready', async () => (await findReasons(app)).includes('writes'))
  await setReadOnly(app, false)
  await until('the node is ready', async () => (await findReasons(app)).length === 0, 30_000)
})

test.skipIf(inject('database') === 'postgres')(
  'a full disk: the first write that fails makes the node unready',
  async () => {
    await using app = await startApp()
    const account = await app.newAccount()
    const [{ page_count: pages }] = await app.db.write.raw('pragma page_count')
    await app.db.write.raw(`pragma max_page_count = ${pages}`)
    const create = () =>
      app.as(account).post('/participants', { full_name: 'Ada', tags: ['x'.repeat(40)] })
    await until('the disk is full', async () => (await create()).status === 503)
    expect(await findReasons(app)).toEqual(['writes'])
    expect((await app.as(account).get('/participants')).status).toBe(200)
    await app.db.write.raw('pragma max_page_count = 1000000')
    expect((await create()).status).toBe(201)
    await until('the node is ready', async () => (await findReasons(app)).length === 0, 30_000)
  },
)
