/** Nodes behind PgBouncer. With `REQUIRE_PGBOUNCER=1`, a test fails if PgBouncer is not
 *  installed. */
import { describe, expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { databaseUrlOf, newDatabase, startApp, type TestApp, until } from '../helpers.ts'
import { isPgBouncerInstalled, startPgBouncer } from '../pgbouncer.ts'
import { startReceiver } from '../receiver.ts'
import { connectTo } from './postgres-client.ts'
import { subscribe } from './subscribe.ts'

const isOnPostgres = inject('database') === 'postgres'
const behindPgBouncer = describe.skipIf(!isOnPostgres || !isPgBouncerInstalled)
const REFUSAL =
  'Workers need a session of PostgreSQL for each connection, but a pooler in transaction mode shares them. ' +
  'Set DATABASE_DIRECT_URL to the URL of PostgreSQL itself.'
const RECORDS = 40

test.runIf(isOnPostgres && process.env.REQUIRE_PGBOUNCER)('PgBouncer is installed', () => {
  expect(isPgBouncerInstalled).toBe(true)
})

/** A database, and the settings of an API node that reaches it through PgBouncer only. */
async function newPooledDatabase({ poolSize = 3 } = {}) {
  const database = await newDatabase('postgres')
  const directUrl = databaseUrlOf(database)
  const bouncer = await startPgBouncer(inject('postgresUrl'), { poolMode: 'transaction', poolSize })
  return {
    directUrl,
    pooled: { ...database.environment, DATABASE_URL: bouncer.through(directUrl) },
    [Symbol.asyncDispose]: bouncer[Symbol.asyncDispose],
  }
}

const api = (environment: Record<string, string>): Promise<TestApp> =>
  startApp({ role: 'api', environment })

behindPgBouncer('ROLE=api through PgBouncer in transaction mode', () => {
  test('serves many requests at once, and a worker with a direct URL delivers their events', async () => {
    await using receiver = await startReceiver()
    await using database = await newPooledDatabase()
    await using app = await api(database.pooled)
    await using _worker = await startApp({
      role: 'worker',
      environment: { ...database.pooled, DATABASE_DIRECT_URL: database.directUrl },
    })
    const account = await app.newAccount()
    const client = app.as(account)
    await subscribe(app, account, receiver.url)
    const created = await Promise.all(
      Array.from({ length: RECORDS }, async (_, number) => {
        const headers = { 'Idempotency-Key': `create-${number}` }
        const create = () => client.post('/participants', { full_name: `Ada ${number}` }, headers)
        const response = await create()
        return { response, repeated: await create() }
      }),
    )
    for (const { response, repeated } of created) {
      expect(response.status).toBe(201)
      expect([repeated.status, repeated.text]).toEqual([201, response.text])
      expect(repeated.headers.get('idempotent-replayed')).toBe('true')
    }
    const [first] = created
    const path = `/participants/${first?.response.body.id}`
    const headers = { 'If-Match': first?.response.headers.get('etag') ?? '' }
    const updates = await Promise.all(
      Array.from({ length: 8 }, (_, number) =>
        client.patch(path, { full_name: `Grace ${number}` }, headers),
      ),
    )
    expect(updates.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(412)])

    const list = await client.get('/participants?page[size]=100&sort=created_at')
    expect(list.body.meta.total).toBe(RECORDS)
    const requests = await receiver.received(RECORDS + 1)
    const delivered = requests.map(({ body }) => JSON.parse(body.toString()).resource.id)
    expect(new Set(delivered)).toEqual(new Set(created.map(({ response }) => response.body.id)))

    const { body } = await client.post('/exports', { resource: 'participants', format: 'csv' })
    await until('the export is completed', async () => {
      const { body: current } = await client.get(`/exports/${body.id}`)
      return current.status === 'completed'
    })
    const file = await client.get(`/exports/${body.id}/file`)
    expect(file.text.trim().split('\r\n')).toHaveLength(RECORDS + 1)
  })

  test('leaves nothing in the sessions of PgBouncer', async () => {
    await using database = await newPooledDatabase({ poolSize: 1 })
    // Through the pool of one connection, the migration could not run: it needs two.
    await using app = await api({ ...database.pooled, DATABASE_DIRECT_URL: database.directUrl })
    const client = await app.newClient()
    expect((await client.post('/participants', { full_name: 'Ada' })).status).toBe(201)
    expect((await client.get('/participants')).status).toBe(200)
    await using session = await connectTo(database.pooled.DATABASE_URL)
    const { rows } = await session.query(
      `select (select count(*) from pg_prepared_statements) as statements,
         (select count(*) from pg_listening_channels()) as channels,
         (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks,
         current_setting('lock_timeout') as lock_timeout`,
    )
    expect(rows).toEqual([{ statements: 0, channels: 0, locks: 0, lock_timeout: '0' }])
  })

  test('keeps the limits: 503 after the lock timeout and after the statement timeout', async () => {
    await using database = await newPooledDatabase()
    const limits = { DATABASE_LOCK_TIMEOUT_MS: '200', DATABASE_STATEMENT_TIMEOUT_MS: '400' }
    await using app = await api({ ...database.pooled, ...limits })
    const client = await app.newClient()
    const { body } = await client.post('/participants', { full_name: 'Ada' })
    const path = `/participants/${body.id}`
    await using locking = await connectTo(database.directUrl)
    await locking.query('begin')
    await locking.query('lock table participants in access exclusive mode')
    const start = performance.now()
    const [update, read] = await Promise.all([
      client.patch(path, { full_name: 'Grace' }),
      client.get(path),
    ])
    expect([update.status, read.status]).toEqual([503, 503])
    expect(performance.now() - start).toBeLessThan(5_000)
    await locking.query('rollback')
    await until('reads succeed', async () => (await client.get(path)).status === 200)
    expect((await client.patch(path, { full_name: 'Grace' })).status).toBe(200)
  })

  test('several nodes start at once with fewer connections than nodes', async () => {
    await using database = await newPooledDatabase({ poolSize: 2 })
    const nodes = await Promise.all([1, 2, 3, 4].map(() => api(database.pooled)))
    const statuses = await Promise.all(
      nodes.map(async (node) => (await node.call('GET', '/readyz')).status),
    )
    await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()))
    expect(statuses).toEqual([200, 200, 200, 200])
  })
})

behindPgBouncer('workers and commands', () => {
  test('a worker behind PgBouncer in transaction mode does not start', async () => {
    await using database = await newPooledDatabase()
    await using muster = await newMuster()
    const environment = { ...database.pooled, PORT: '0' }
    for (const ROLE of ['worker', 'all'])
      expect(await muster.run(['serve'], { environment: { ...environment, ROLE } })).toMatchObject({
        status: 1,
        stderr: expect.stringContaining(REFUSAL),
      })
  })

  test('a worker works through PgBouncer in session mode', async () => {
    await using receiver = await startReceiver()
    await using bouncer = await startPgBouncer(inject('postgresUrl'), {
      poolMode: 'session',
      poolSize: 30,
    })
    const database = await newDatabase('postgres')
    const DATABASE_URL = bouncer.through(databaseUrlOf(database))
    const environment = { ...database.environment, DATABASE_URL }
    await using app = await startApp({ role: 'all', environment })
    const account = await app.newAccount()
    await subscribe(app, account, receiver.url)
    await app.as(account).post('/participants', { full_name: 'Ada' })
    await receiver.received(1)
    const { text } = await app.call('GET', '/metrics')
    expect(text).toContain('muster_delivery_listen_connected 1')
  })

  test('muster migrate uses DATABASE_DIRECT_URL', async () => {
    const database = await newDatabase('postgres')
    const directUrl = databaseUrlOf(database)
    await using muster = await newMuster()
    const migrated = await muster.json(['migrate'], {
      environment: {
        ...database.environment,
        DATABASE_URL: Object.assign(new URL(directUrl), { port: '1' }).href,
        DATABASE_DIRECT_URL: directUrl,
        ROLE: 'api',
      },
    })
    expect(migrated.migrations.length).toBeGreaterThan(0)
  })
})
