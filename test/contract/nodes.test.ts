/** Several nodes on one PostgreSQL. */
import { randomUUID } from 'node:crypto'
import { describe, expect, inject, test } from 'vitest'
import { migrate, withSetupLock } from '../../records/database/migrate.ts'
import { readMigrations } from '../../records/database/migration-files.ts'
import { openDatabase } from '../../records/database/open.ts'
import { readExpectedSchema } from '../../records/database/schema.ts'
import { readConfig } from '../../server/config.ts'
import { newAccountOwner } from '../console/visitors.ts'
import { databaseUrlOf, newDatabase, startApp } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { connectTo } from './postgres-client.ts'
import { subscribe } from './subscribe.ts'

const onPostgres = describe.skipIf(inject('database') !== 'postgres')

onPostgres('several nodes', () => {
  test('start at once on an empty database: one migrates, the others wait', async () => {
    await using database = await newDatabase()
    const { database: place } = readConfig({ ...database.environment })
    const migrations = await Promise.all(
      [1, 2, 3].map(() =>
        withSetupLock(place, async () => {
          const db = openDatabase(place)
          return migrate(db).finally(() => db.close())
        }),
      ),
    )
    const names = (await readMigrations()).map(({ name }) => name)
    expect(migrations.toSorted((a, b) => a.length - b.length)).toEqual([[], [], names])
  })

  test('count the requests of a user together, and refuse a revoked key immediately', async () => {
    await using database = await newDatabase()
    const environment = { RATE_LIMIT_PER_MINUTE: '4' }
    await using first = await startApp({ database, environment })
    await using second = await startApp({ database, environment })
    const account = await first.newAccount()
    const statuses: number[] = []
    for (const node of [first, second, first, second, first, second])
      statuses.push((await node.as(account).get('/participants')).status)
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
    await first.db
      .write('api_keys')
      .where({ user_id: account.userId })
      .update({ revoked_at: Date.now() })
    expect((await second.as(account).get('/participants')).status).toBe(401)
  })

  test('a later version adds a column to each table: earlier nodes go on', async () => {
    await using receiver = await startReceiver()
    await using app = await startApp({ role: 'all' })
    const { account, owner } = await newAccountOwner(app)
    await subscribe(app, account, receiver.url)
    const use = async (): Promise<void> => {
      const headers = { 'Idempotency-Key': randomUUID() }
      // So many that each connection prepares its statements.
      for (let times = 0; times < 8; times++) {
        for (const path of ['', '/requests', '/webhooks', '/people'])
          expect((await owner.get(path)).status).toBe(200)
        const { status } = await app.as(account).post('/tasks', { title: 'Call' }, headers)
        expect(status).toBe(201)
      }
    }
    await use()
    await receiver.received(1)
    for (const table of Object.keys(await readExpectedSchema('postgres')))
      await app.db.write.raw(`alter table ${table} add column of_later_version text`)
    await use()
    await receiver.received(2)
  })

  test('an API node takes the request, a worker node delivers the event', async () => {
    await using receiver = await startReceiver()
    await using database = await newDatabase()
    await using api = await startApp({ database, role: 'api' })
    await using worker = await startApp({ database, role: 'worker' })
    const account = await api.newAccount()
    await subscribe(api, account, receiver.url)
    const { body } = await api.as(account).post('/participants', { full_name: 'Ada' })
    const [request] = await receiver.received(1)
    expect(JSON.parse(request?.body.toString() ?? '')).toMatchObject({
      event_type: 'participant.created',
      resource: { id: body.id },
    })
    expect((await worker.as(account).get('/participants')).status).toBe(404)
    expect((await worker.call('GET', '/readyz')).status).toBe(200)
    expect((await worker.call('GET', '/')).status).toBe(404)
  })

  test('the database stops → 503 with Retry-After, alive but not ready; it returns → success', async () => {
    await using database = await newDatabase()
    const logLines: Record<string, unknown>[] = []
    const logTo = { write: (line: string) => void logLines.push(JSON.parse(line)) }
    await using app = await startApp({ database, role: 'all', logLevel: 'warn', logTo })
    const account = await app.newAccount()
    const name = new URL(databaseUrlOf(database)).pathname.slice(1)
    await using admin = await connectTo(inject('postgresUrl'))
    await admin.query(`alter database ${name} allow_connections false`)
    await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
      name,
    ])
    const answer = await app.as(account).post('/participants', { full_name: 'Ada' })
    expect([answer.status, Number(answer.headers.get('retry-after')) > 0]).toEqual([503, true])
    expect([
      (await app.call('GET', '/healthz')).status,
      (await app.call('GET', '/readyz')).status,
    ]).toEqual([200, 503])
    await admin.query(`alter database ${name} allow_connections true`)
    expect((await app.as(account).post('/participants', { full_name: 'Ada' })).status).toBe(201)
    expect((await app.as(account).get('/participants')).body.meta.total).toBe(1)
    // The log omits the other fields of errors: a driver adds its connection, and the values of the
    // statement.
    const errors = logLines.flatMap(({ err }) => (err ? [err as object] : []))
    expect(errors.length).toBeGreaterThan(0)
    for (const error of errors)
      expect(['type', 'message', 'stack', 'code', 'aggregateErrors']).toEqual(
        expect.arrayContaining(Object.keys(error)),
      )
  })
})
