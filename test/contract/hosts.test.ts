/** A DATABASE_URL with several hosts, on a primary and a standby. */
import { describe, expect, inject, test } from 'vitest'
import { errorCode } from '../../records/database/errors.ts'
import { DEFAULT_LIMITS } from '../../records/database/limits.ts'
import { openDatabase } from '../../records/database/open.ts'
import { select } from '../../records/database/statements.ts'
import { transactionAfter } from '../../records/database/transaction.ts'
import { startApp, type TestApp, until } from '../helpers.ts'
import { startPostgres, type TestPostgres } from '../postgres.ts'
import { startReceiver } from '../receiver.ts'
import { connectTo } from './postgres-client.ts'
import { subscribe } from './subscribe.ts'

const onPostgres = describe.skipIf(inject('database') !== 'postgres')
const SECRET_KEY = 'a secret key that only tests would ever use'

interface Pair extends AsyncDisposable {
  primary: TestPostgres
  standby: TestPostgres
  /** The URL of a closed port, the standby and the primary, in this order. */
  url: string
  /** The name of the database. */
  name: string
}

async function startPair(): Promise<Pair> {
  const primary = await startPostgres()
  const database = new URL(await primary.createDatabase())
  const standby = await primary.startStandby()
  const hosts = ['127.0.0.1:1', new URL(standby.url('x')).host, database.host]
  return {
    primary,
    standby,
    name: database.pathname.slice(1),
    url: `postgres://postgres@${hosts}${database.pathname}?target_session_attrs=read-write`,
    async [Symbol.asyncDispose]() {
      await standby.stop()
      await primary.stop()
    },
  }
}

const startNode = (pair: Pair, role: 'api' | 'all'): Promise<TestApp> =>
  startApp({
    database: {
      environment: { DATABASE_URL: pair.url, SECRET_KEY },
      [Symbol.asyncDispose]: async () => undefined,
    },
    role,
    environment: { RATE_LIMIT_PER_MINUTE: '1000000' },
  })

/** Waits until the standby has all that the primary has committed. */
async function untilReplayed({ primary }: Pair): Promise<void> {
  await using client = await connectTo(primary.url('postgres'))
  await until('the standby has replayed everything', async () => {
    const { rows } = await client.query(
      'select replay_lsn = pg_current_wal_lsn() as done from pg_stat_replication',
    )
    return rows[0]?.done === true
  })
}

onPostgres('several hosts in DATABASE_URL', () => {
  test('requests, workers and notifications follow the primary', async () => {
    await using pair = await startPair()
    await using receiver = await startReceiver()
    await using node = await startNode(pair, 'all')
    const account = await node.newAccount()
    await subscribe(node, account, receiver.url)
    const client = node.as(account)
    expect((await client.post('/participants', { full_name: 'Ada' })).status).toBe(201)
    await receiver.received(1)
    await untilReplayed(pair)
    await pair.primary.kill()
    expect((await client.post('/participants', { full_name: 'Grace' })).status).toBe(503)
    await pair.standby.promote()
    await until(
      'a change succeeds',
      async () => (await client.post('/participants', { full_name: 'Grace' })).status === 201,
    )
    const names = (await client.get('/participants')).body.data.map(
      ({ full_name }: { full_name: string }) => full_name,
    )
    expect(names.toSorted()).toEqual(['Ada', 'Grace'])
    await receiver.received(2)
    await until('the node is ready', async () => (await node.call('GET', '/readyz')).status === 200)
  })

  test('a connection to a host that became read-only is closed', async () => {
    await using pair = await startPair()
    await using node = await startNode(pair, 'api')
    const client = node.as(await node.newAccount())
    await untilReplayed(pair)
    await pair.standby.promote()
    await using former = await connectTo(pair.primary.url('postgres'))
    await former.query('alter system set default_transaction_read_only = on')
    await former.query('select pg_reload_conf()')
    await until('the former primary is read-only', async () => {
      const { rows } = await former.query('show transaction_read_only')
      return rows[0].transaction_read_only === 'on'
    })
    let refused = 0
    await until('a change succeeds', async () => {
      const { status } = await client.post('/tasks', { title: 'Call' })
      if (status === 503) refused++
      return status === 201
    })
    expect(refused).toBeLessThanOrEqual(DEFAULT_LIMITS.poolSize)
    await using current = await connectTo(pair.standby.url(pair.name))
    expect((await current.query('select title from tasks')).rows).toEqual([{ title: 'Call' }])
  })

  test('a transaction that cannot begin on a standby fails with the cause', async () => {
    await using pair = await startPair()
    const db = openDatabase({ databaseUrl: pair.standby.url('postgres') })
    const code = await transactionAfter(
      db,
      { isIdentified: true, read: ({ sql }) => select(sql, 'select 1', []) },
      async () => 'none',
    ).catch(errorCode)
    await db.close()
    expect(code).toBe('25006')
  })
})
