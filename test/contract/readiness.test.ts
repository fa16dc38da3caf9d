/** /readyz while the database accepts no writes. */
import { expect, inject, test } from 'vitest'
import { databaseUrlOf, startApp, type TestApp, until } from '../helpers.ts'
import { connectTo } from './postgres-client.ts'

async function findReasons(app: TestApp): Promise<string[]> {
  return JSON.parse((await app.call('GET', '/readyz')).text).reasons ?? []
}

/** The reasons that `muster_ready` reports. */
async function findReportedReasons(app: TestApp): Promise<(string | undefined)[]> {
  const { text } = await app.call('GET', '/metrics')
  expect(text.match(/^muster_ready\{/gm)).toHaveLength(7)
  return [...text.matchAll(/^muster_ready\{reason="(\w+)"\} 0$/gm)].map(([, reason]) => reason)
}

/** Sets whether all connections of the database are read-only. */
async function setReadOnly({ db, database }: TestApp, value: 'on' | 'off'): Promise<void> {
  if (db.dialect === 'sqlite') {
    await db.write.raw(`pragma query_only = ${value}`)
    return
  }
  const name = new URL(databaseUrlOf(database)).pathname.slice(1)
  await using admin = await connectTo(inject('postgresUrl'))
  await admin.query(`alter database ${name} set default_transaction_read_only = ${value}`)
  // Only new connections have the setting.
  await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
    name,
  ])
}

test('a read-only database: not ready without any request, and ready once it accepts writes', async () => {
  await using app = await startApp()
  expect(await findReasons(app)).toEqual([])
  expect(await findReportedReasons(app)).toEqual([])
  await setReadOnly(app, 'on')
  await until('the node is not ready', async () => (await findReasons(app)).includes('writes'))
  expect(await findReportedReasons(app)).toEqual(['writes'])
  await setReadOnly(app, 'off')
  await until('the node is ready', async () => (await findReasons(app)).length === 0, 30_000)
  expect(await findReportedReasons(app)).toEqual([])
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
