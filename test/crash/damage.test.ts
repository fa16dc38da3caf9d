/** Pages of the database are overwritten while the service runs. */
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { newMuster } from '../cli/muster.ts'
import { type AppOptions, startApp, type TestApp, until } from '../helpers.ts'
import { startPostgres } from '../postgres.ts'

/** The first check of a file begins 10 s after the start. Counts of PostgreSQL are read every 10 s. */
const NOTICED_WITHIN_MS = 40_000
const CHECKED_WITHIN_MS = 12_000

async function overwrite(file: string, start: number, length: number): Promise<void> {
  const handle = await open(file, 'r+')
  await handle.write(Buffer.alloc(length, 0x5a), 0, length, start)
  await handle.sync()
  await handle.close()
}

async function startLogged(options: AppOptions) {
  const lines: { level: string; msg: string; damage?: string }[] = []
  const logTo = { write: (line: string) => void lines.push(JSON.parse(line)) }
  return { app: await startApp({ ...options, logLevel: 'warn', logTo }), lines }
}

const findReasons = async (app: TestApp): Promise<string[]> =>
  JSON.parse((await app.call('GET', '/readyz')).text).reasons ?? []

const readReady = async (app: TestApp): Promise<string | undefined> =>
  /^muster_ready\{reason="damage"\} (\d)$/m.exec((await app.call('GET', '/metrics')).text)?.[1]

async function expectNoticed({ app, lines }: Awaited<ReturnType<typeof startLogged>>) {
  await until(
    'the damage is noticed',
    async () => (await findReasons(app)).includes('damage'),
    NOTICED_WITHIN_MS,
  )
  expect(await readReady(app)).toBe('0')
  const found = lines.filter(({ msg }) => msg.startsWith('The database has damaged pages'))
  expect(found).toMatchObject([{ level: 'error', damage: expect.stringMatching(/./) }])
}

/** Overwrites the first page of a table that no connection for reads has read yet. */
async function damageTable({ db, config: { database } }: TestApp, table: string): Promise<void> {
  await db.write.raw('pragma wal_checkpoint(truncate)')
  const { rootpage } = await db.read('sqlite_schema').where('name', table).first()
  const [{ page_size: size }] = await db.read.raw('pragma page_size')
  if (!('dataDir' in database)) throw new Error('SQLite has no DATABASE_URL')
  await overwrite(join(database.dataDir, 'muster.sqlite'), (rootpage - 1) * size, size)
}

test.skipIf(inject('database') !== 'sqlite')(
  'a page of SQLite is overwritten: a check finds it without a request that reads it',
  async () => {
    const logged = await startLogged({})
    await using app = logged.app
    expect(await findReasons(app)).toEqual([])
    expect(await readReady(app)).toBe('1')
    await damageTable(app, 'payments')
    await expectNoticed(logged)
  },
)

test.skipIf(inject('database') !== 'sqlite')(
  'a page of SQLite is overwritten: a request that reads it shows it at once',
  async () => {
    await using app = await startApp()
    const client = await app.newClient()
    const { id } = (await client.post('/tasks', { title: 'Call back' })).body
    await damageTable(app, 'tasks')
    expect((await client.get(`/tasks/${id}`)).status).toBe(500)
    expect(await findReasons(app)).toEqual(['damage'])
  },
)

test.skipIf(inject('database') !== 'postgres')(
  'a page of PostgreSQL is overwritten: noticed once a request has read it, until the count is reset',
  async () => {
    const postgres = await startPostgres()
    await using _ = { [Symbol.asyncDispose]: postgres.stop }
    const environment = {
      DATABASE_URL: await postgres.createDatabase(),
      SECRET_KEY: 'a secret key that only tests would ever use',
    }
    const database = { environment, [Symbol.asyncDispose]: async () => undefined }
    const logged = await startLogged({ database })
    await using app = logged.app
    const client = await app.newClient()
    await client.post('/participants', { full_name: 'Ada Lovelace' })
    await app.db.write.raw('checkpoint')
    const { rows } = await app.db.read.raw(
      "select current_setting('data_directory') as folder, pg_relation_filepath('participants') as file",
    )
    await postgres.kill()
    await overwrite(join(rows[0].folder, rows[0].file), 4_000, 1_000)
    await postgres.restart()
    await until('the node is ready', async () => (await findReasons(app)).length === 0, 30_000)
    expect((await client.get('/participants')).status).toBe(500)
    await expectNoticed(logged)
    await using muster = await newMuster()
    expect((await muster.json(['doctor'], { environment })).findings).toContainEqual(
      expect.objectContaining({ level: 'warning', text: expect.stringContaining('checksums') }),
    )
    const admin = openDatabase({ databaseUrl: environment.DATABASE_URL })
    await admin.write.raw('select pg_stat_reset()')
    await admin.close()
    await until('the node is ready', async () => (await findReasons(app)).length === 0, 30_000)
    expect(await readReady(app)).toBe('1')
  },
  120_000,
)

test.skipIf(inject('database') !== 'postgres')(
  'checksum failures that a new primary counted earlier are no damage',
  async () => {
    const primary = await startPostgres()
    await using _primary = { [Symbol.asyncDispose]: primary.stop }
    const databaseUrl = await primary.createDatabase()
    const name = new URL(databaseUrl).pathname.slice(1)
    const source = openDatabase({ databaseUrl })
    await source.write.raw('create table old as select 1 as value')
    await source.write.raw('checkpoint')
    await source.close()
    const standby = await primary.startStandby()
    await using _standby = { [Symbol.asyncDispose]: standby.stop }

    const reader = openDatabase({ databaseUrl: standby.url(name) })
    const { rows } = await reader.read.raw(
      "select current_setting('data_directory') as folder, pg_relation_filepath('old') as file",
    )
    const file = join(rows[0].folder, rows[0].file)
    const intact = await readFile(file)
    await overwrite(file, 4_000, 1_000)
    await expect(reader.read('old')).rejects.toThrow('invalid page')
    await writeFile(file, intact)
    await expect(reader.read('old')).resolves.toHaveLength(1)
    await reader.close()

    const [first, second] = [primary, standby].map((server) => new URL(server.url(name)).host)
    const environment = {
      DATABASE_URL: `postgres://postgres@${first},${second}/${name}?target_session_attrs=read-write`,
      SECRET_KEY: 'a secret key that only tests would ever use',
    }
    const database = { environment, [Symbol.asyncDispose]: async () => undefined }
    const { app, lines } = await startLogged({ database })
    await using _ = app
    expect(await findReasons(app)).toEqual([])
    await primary.kill()
    await standby.promote()
    await until('the node is ready', async () => (await findReasons(app)).length === 0, 30_000)
    await delay(CHECKED_WITHIN_MS)
    expect(await findReasons(app)).toEqual([])
    expect(lines.filter(({ damage }) => damage !== undefined)).toEqual([])
  },
  120_000,
)
