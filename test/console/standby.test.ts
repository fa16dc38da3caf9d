/** Figures, logs and lists of the console, and exports, on a standby of PostgreSQL. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Muster, newMuster } from '../cli/muster.ts'
import { connectTo } from '../contract/postgres-client.ts'
import { type AppOptions, startApp, type TestApp, until } from '../helpers.ts'
import { startPostgres, type TestPostgres } from '../postgres.ts'
import { submitForm } from './forms.ts'
import { type Visitor, visitor } from './visitors.ts'

const SECRET_KEY = 'a secret key that only tests would ever use'
/** A third of DATABASE_POOL_SIZE. */
const STANDBY_CONNECTIONS = 4
const MIN_LAG_MS = 2_000
const PARTICIPANTS = '/records/participants'

interface Pair extends AsyncDisposable {
  primary: TestPostgres
  standby: TestPostgres
  environment: { DATABASE_URL: string; DATABASE_READ_URL: string; SECRET_KEY: string }
}

async function startPair(): Promise<Pair> {
  const primary = await startPostgres()
  const url = new URL(await primary.createDatabase())
  await using admin = await connectTo(url.href)
  // The standby copies the setting: its replay cancels reads at once.
  await admin.query('alter system set max_standby_streaming_delay = 0')
  const standby = await primary.startStandby()
  const { host } = new URL(standby.url('x'))
  const readUrl = Object.assign(new URL(url), { host }).href
  return {
    primary,
    standby,
    environment: { DATABASE_URL: url.href, DATABASE_READ_URL: readUrl, SECRET_KEY },
    async [Symbol.asyncDispose]() {
      await standby.stop()
      await primary.stop()
    },
  }
}

/** A node that reads the standby. */
async function startNode({ environment }: Pair, options: AppOptions = {}): Promise<TestApp> {
  const { DATABASE_READ_URL, ...database } = environment
  const node = await startApp({
    ...options,
    database: { environment: database, [Symbol.asyncDispose]: async () => undefined },
    environment: { DATABASE_READ_URL, DATABASE_READ_MAX_LAG_MS: '60000', ...options.environment },
  })
  await untilUsed(node, true)
  return node
}

async function isUsed(node: TestApp): Promise<boolean> {
  const { text } = await node.call('GET', '/metrics')
  return /^muster_database_standby_used 1$/m.test(text)
}

const untilUsed = (node: TestApp, used: boolean): Promise<unknown> =>
  until(`the standby is used: ${used}`, async () => (await isUsed(node)) === used, 30_000)

/** Runs `work` while the standby, which has all that was committed, gets no newer changes. */
async function whilePaused<T>(
  { environment }: Pair,
  node: TestApp,
  work: () => Promise<T>,
): Promise<T> {
  await using standby = await connectTo(environment.DATABASE_READ_URL)
  const { rows } = await node.db.read.raw('select pg_current_wal_flush_lsn() as position')
  const hasReplayed = 'select pg_last_wal_replay_lsn() >= $1 as done'
  await until('the standby has replayed everything', async () => {
    return (await standby.query(hasReplayed, [rows[0].position])).rows[0].done
  })
  await standby.query('select pg_wal_replay_pause()')
  await until('the replay is paused', async () => {
    const { rows } = await standby.query('select pg_get_wal_replay_pause_state() as state')
    return rows[0].state === 'paused'
  })
  return await work().finally(() => standby.query('select pg_wal_replay_resume()'))
}

const create = async (node: TestApp, account: { key: string }, name: string): Promise<string> =>
  (await node.as(account).post('/participants', { full_name: name })).body.id

const lists = async (visits: Visitor, name: string): Promise<boolean> => {
  const { status, text } = await visits.get(PARTICIPANTS)
  expect(status).toBe(200)
  return text.includes(name)
}

const newDoctor = (muster: Muster, variables: Record<string, string>) => async () => {
  const environment = { ...variables, DATABASE_READ_MAX_LAG_MS: String(MIN_LAG_MS) }
  return (await muster.run(['doctor'], { environment })).stdout
}

describe.skipIf(inject('database') !== 'postgres')('DATABASE_READ_URL', () => {
  let pair: Pair
  beforeAll(async () => {
    pair = await startPair()
  })
  afterAll(() => pair?.[Symbol.asyncDispose]())

  test('figures, logs and lists read the standby; records, forms and the API read the primary', async () => {
    await using node = await startNode(pair)
    const account = await node.newAccount()
    const owner = await visitor(node, account)
    await create(node, account, 'Grace Hopper')
    const id = await whilePaused(pair, node, async () => {
      const id = await create(node, account, 'Ada Lovelace')
      expect(await lists(owner, 'Grace Hopper')).toBe(true)
      expect(await lists(owner, 'Ada Lovelace')).toBe(false)
      for (const path of [`${PARTICIPANTS}/${id}`, `${PARTICIPANTS}/${id}/edit`])
        expect((await owner.get(path)).text).toContain('Ada Lovelace')
      const client = node.as(account)
      expect((await client.get('/participants')).body.meta.total).toBe(2)
      expect((await client.get(`/participants/${id}`)).status).toBe(200)
      const isLogged = (row: { path: string }): boolean => row.path.endsWith(id)
      await until('the request is logged', async () =>
        (await node.db.read('request_log').select('path')).some(isLogged),
      )
      for (const path of ['/requests', '/requests.csv']) {
        const { status, text } = await owner.get(path)
        expect([path, status, text.includes(id)]).toEqual([path, 200, false])
      }
      return id
    })
    await until('the log has the request', async () =>
      (await owner.get('/requests.csv')).text.includes(id),
    )
    await until('the list has both', () => lists(owner, 'Ada Lovelace'))
  })

  test('after a change, its session reads the primary on each node, until the standby has it', async () => {
    await using first = await startNode(pair)
    await using second = await startNode(pair)
    const account = await first.newAccount()
    const [owner, other] = [await visitor(first, account), await visitor(first, account)]
    const onSecond = async (): Promise<string> => {
      const headers = { Cookie: owner.cookie }
      return (await fetch(`${second.url}/console${PARTICIPANTS}`, { headers })).text()
    }
    await whilePaused(pair, first, async () => {
      await submitForm(owner, `${PARTICIPANTS}/new`, { full_name: 'Ada Lovelace' })
      expect(await lists(owner, 'Ada Lovelace')).toBe(true)
      expect(await onSecond()).toContain('Ada Lovelace')
      expect(await lists(other, 'Ada Lovelace')).toBe(false)
    })
    await until('the standby has the change', () => lists(other, 'Ada Lovelace'))
    await whilePaused(pair, first, async () => {
      const webhook = { url: 'https://example.com/', event_types: '*', ordering: 'none' }
      expect((await owner.post('/webhooks', webhook)).status).toBe(200)
      const [id] = await first.db.read('webhooks').pluck('id')
      expect((await other.get(`/webhooks/${id}`)).text).toContain('https://example.com/')
    })
    const reload = (visits: Visitor) => visits.get('', { 'Muster-Poll': '1' })
    await whilePaused(pair, first, async () => {
      const change = { url: 'https://renamed.example.com/', event_types: '*', ordering: 'none' }
      const [id] = await first.db.read('webhooks').pluck('id')
      expect((await owner.post(`/webhooks/${id}/edit`, change)).status).toBe(303)
      expect((await reload(other)).text).not.toContain('renamed.example.com')
      expect((await reload(owner)).text).toContain('renamed.example.com')
    })
    await whilePaused(pair, first, async () => {
      await create(first, account, 'Grace Hopper')
      expect(await lists(owner, 'Grace Hopper')).toBe(false)
    })
  })

  test('an export has all records from before its creation, and reads the standby', async () => {
    await using node = await startNode(pair, { role: 'all' })
    const account = await node.newAccount()
    const client = node.as(account)
    const newExport = async (): Promise<string> => {
      const created = await client.post('/exports', { resource: 'participants', format: 'json' })
      const path = `/exports/${created.body.id}`
      await until('the export is complete', async () => {
        return (await client.get(path)).body.status === 'completed'
      })
      return (await client.get(`${path}/file`)).text
    }
    await whilePaused(pair, node, async () => {
      await create(node, account, 'Ada Lovelace')
      expect(await newExport()).toContain('Ada Lovelace')
    })
    await using standby = await connectTo(pair.environment.DATABASE_READ_URL)
    const countScans = async (): Promise<number> => {
      const { rows } = await standby.query(
        "select seq_scan + idx_scan as scans from pg_stat_user_tables where relname = 'participants'",
      )
      return Number(rows[0].scans)
    }
    const before = await countScans()
    await until('an export has read the standby', async () => {
      expect(await newExport()).toContain('Ada Lovelace')
      return (await countScans()) > before
    })
  })

  test('a read that the replay cancels runs again on the primary', async () => {
    await using node = await startNode(pair)
    await using primary = await connectTo(pair.environment.DATABASE_URL)
    await using standby = await connectTo(pair.environment.DATABASE_READ_URL)
    const read = node.db.standby
      ?.readerAfter(0)
      .raw(
        'select case when pg_is_in_recovery() then pg_sleep(50) end, count(*), pg_is_in_recovery() as standby ' +
          'from participants',
      )
    const result = Promise.resolve(read)
    await until('the standby runs it', async () => {
      const { rows } = await standby.query(
        "select 1 from pg_stat_activity where wait_event = 'PgSleep'",
      )
      return rows.length === 1
    })
    await primary.query('begin; lock table participants in access exclusive mode; commit')
    await create(node, await node.newAccount(), 'Ada Lovelace')
    expect((await result)?.rows).toMatchObject([{ standby: false }])
    expect(await isUsed(node)).toBe(true)
  })

  test('many reads at once use a bounded number of connections to the standby', async () => {
    await using node = await startNode(pair)
    const owner = await visitor(node, await node.newAccount())
    await using standby = await connectTo(pair.environment.DATABASE_READ_URL)
    await Promise.all(Array.from({ length: 50 }, () => lists(owner, '')))
    const { rows } = await standby.query(
      "select count(*)::int as count from pg_stat_activity where application_name = 'muster'",
    )
    expect(rows[0].count).toBeGreaterThan(0)
    expect(rows[0].count).toBeLessThanOrEqual(STANDBY_CONNECTIONS)
  })

  test('a standby that lags too much is not read, and the node stays ready', async () => {
    const lines: string[] = []
    await using node = await startNode(pair, {
      environment: { DATABASE_READ_MAX_LAG_MS: String(MIN_LAG_MS) },
      logLevel: 'info',
      logTo: { write: (line) => void lines.push(line) },
    })
    const account = await node.newAccount()
    const owner = await visitor(node, account)
    await whilePaused(pair, node, async () => {
      await create(node, account, 'Ada Lovelace')
      const createdAt = performance.now()
      await until('the list is current', () => lists(owner, 'Ada Lovelace'))
      expect(performance.now() - createdAt).toBeLessThan(MIN_LAG_MS + 1_500)
      await untilUsed(node, false)
      await until('the log says so', () => lines.some((line) => line.includes('it lags more than')))
      expect((await node.call('GET', '/readyz')).status).toBe(200)
    })
    await untilUsed(node, true)
  })

  test('a standby that has another database, or is of another cluster, is not read', async () => {
    await using muster = await newMuster()
    await using other = await startPair()
    for (const DATABASE_READ_URL of [
      pair.standby.url('postgres'),
      other.environment.DATABASE_READ_URL,
    ]) {
      const environment = { ...pair.environment, DATABASE_READ_URL }
      expect(await newDoctor(muster, environment)()).toMatch(
        /^warning +standbys +.* is not read: it has another database than DATABASE_URL\.$/m,
      )
    }
  })

  test('a standby that is killed or promoted is not read, and no request waits for it', async () => {
    await using own = await startPair()
    await using muster = await newMuster()
    await using node = await startNode(own)
    const account = await node.newAccount()
    const owner = await visitor(node, account)
    await own.standby.kill()
    await create(node, account, 'Ada Lovelace')
    const startedAt = performance.now()
    for (let read = 0; read < 10; read++) expect(await lists(owner, 'Ada Lovelace')).toBe(true)
    expect(performance.now() - startedAt).toBeLessThan(5_000)
    await untilUsed(node, false)
    expect((await node.call('GET', '/readyz')).status).toBe(200)
    const doctor = newDoctor(muster, own.environment)
    expect(await doctor()).toMatch(
      /^warning +standbys +The standby of DATABASE_READ_URL is not read: connect ECONNREFUSED/m,
    )

    await own.standby.restart()
    await untilUsed(node, true)
    expect(await doctor()).toMatch(/^ok +standbys +The console and exports can read the standby/m)
    await own.standby.promote()
    await create(node, account, 'Grace Hopper')
    expect(await lists(owner, 'Grace Hopper')).toBe(true)
    await untilUsed(node, false)
    expect(await doctor()).toMatch(/^warning +standbys +.*: it is a primary\.$/m)
  })
})
