/** A commit that does not return, because it waits for a standby that does not exist: the node keeps
 *  to its connections, answers reads, says that it is not ready, and recovers. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { percentile } from '../bench/result.ts'
import { type Node, openCluster } from '../chaos/cluster.ts'
import { connectTo, type PostgresClient } from '../contract/postgres-client.ts'
import { startApp, until } from '../helpers.ts'
import { isPgBouncerInstalled, startPgBouncer } from '../pgbouncer.ts'
import { startPostgres } from '../postgres.ts'
import { create } from './load.ts'
import { startTcpProxy } from './proxy.ts'

/** `STALL_MS=300000 STATEMENT_TIMEOUT_MS=15000` for a thorough run. */
const STALL_MS = Number(process.env.STALL_MS ?? 20_000)
const STATEMENT_TIMEOUT_MS = Number(process.env.STATEMENT_TIMEOUT_MS ?? 2_000)
const NORMAL_MS = 5_000
const WRITERS = 24
/** DATABASE_POOL_SIZE + QUEUE_POOL_SIZE + LISTEN + the session of the worker. */
const MAX_CONNECTIONS = 12 + 6 + 1 + 1
const READ_EVERY_MS = 50
/** A probe of /readyz begins every second, and a check may take 3 s. */
const UNREADY_WITHIN_MS = 5_000
const RECOVERED_WITHIN_MS = 2_000
/** How often the connections of a node are cut, and how long it may open others in between. */
const CUTS = 4
const BETWEEN_CUTS_MS = 2_000
/** Each pool may have one connection more, to end the backends of those that were cut. */
const POOLS = 4
/** Other tests may slow the service down. */
const MIN_READ_P99_MS = 250

const COUNT_BACKENDS = `
  select count(*) as all, count(*) filter (where wait_event = 'SyncRep') as waiting
  from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`

async function setStandby(admin: PostgresClient, names: string): Promise<void> {
  await admin.query(`alter system set synchronous_standby_names = '${names}'`)
  await admin.query('select pg_reload_conf()')
}

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const start = performance.now()
  return { result: await work(), ms: performance.now() - start }
}

function startClients(node: Node, token: string) {
  const created: { name: string; at: number }[] = []
  const reads: { status: number; ms: number; at: number }[] = []
  const unconfirmed: { name: string; outcome: string | null }[] = []
  const failures: string[] = []
  let isStopping = false
  let number = 0
  const write = async (): Promise<void> => {
    while (!isStopping) {
      const name = `Ada ${number++}`
      const response = await create(node.url, '/participants', { full_name: name }, { token })
      const text = await response.text()
      if (response.status === 201) created.push({ name, at: Date.now() })
      else if (response.status === 503)
        unconfirmed.push({ name, outcome: response.headers.get('x-change-outcome') })
      else failures.push(`${response.status} ${text}`)
      if (response.status !== 201) await delay(100)
    }
  }
  const headers = { Authorization: `Bearer ${token}` }
  const read = async (): Promise<void> => {
    while (!isStopping) {
      const { result, ms } = await timed(async () => {
        const response = await fetch(`${node.url}/public/v1/participants?page[size]=1`, { headers })
        await response.text()
        return response.status
      })
      reads.push({ status: result, ms, at: Date.now() })
      await delay(READ_EVERY_MS)
    }
  }
  const clients = [...Array.from({ length: WRITERS }, write), read()]
  return {
    created,
    reads,
    unconfirmed,
    failures,
    async stop() {
      isStopping = true
      await Promise.all(clients)
    },
  }
}

const readP99 = (reads: { ms: number }[]): number =>
  percentile(
    reads.map(({ ms }) => ms),
    0.99,
  )

test.skipIf(inject('database') !== 'postgres')(
  'no standby confirms: bounded connections, reads and an honest /readyz, and then nothing is lost',
  async () => {
    await using cluster = await openCluster({
      kind: 'postgres',
      environment: { DATABASE_STATEMENT_TIMEOUT_MS: String(STATEMENT_TIMEOUT_MS) },
    })
    const node = await cluster.addNode('node', 'all')
    await using admin = await connectTo(cluster.postgres?.url('postgres') ?? '')
    const findReasons = async (): Promise<string[]> => {
      const response = await fetch(`${node.url}/readyz`)
      return ((await response.json()) as { reasons?: string[] }).reasons ?? []
    }
    const clients = startClients(node, cluster.token)
    await delay(NORMAL_MS)
    const normalP99 = readP99(clients.reads)

    await setStandby(admin, 'nosuch')
    const stalledAt = Date.now()
    const counts: { all: number; waiting: number }[] = []
    const readiness: { atMs: number; reasons: string }[] = []
    while (Date.now() - stalledAt < STALL_MS) {
      const [{ rows }, reasons] = await Promise.all([admin.query(COUNT_BACKENDS), findReasons()])
      counts.push({ all: Number(rows[0].all), waiting: Number(rows[0].waiting) })
      readiness.push({ atMs: Date.now() - stalledAt, reasons: reasons.join() })
      await delay(500)
    }
    const readsWhile = clients.reads.filter(({ at }) => at > stalledAt + 1_000)
    const readyAgain = readiness.filter(
      ({ atMs, reasons }) => atMs > UNREADY_WITHIN_MS && reasons !== 'writes',
    )

    const metrics = await (await fetch(`${node.url}/metrics`)).text()
    await setStandby(admin, '')
    const endedAt = Date.now()
    const isRecovered = () => clients.created.some(({ at }) => at > endedAt)
    await until('a change succeeds', isRecovered, 60_000)
    const recoveredMs = Date.now() - endedAt
    await until('the node is ready', async () => (await findReasons()).length === 0)
    await clients.stop()

    const most = Math.max(...counts.map(({ all }) => all))
    const stalledP99 = readP99(readsWhile)
    const stored = new Set(await cluster.db.read('participants').pluck('full_name'))
    const lost = clients.created.filter(({ name }) => !stored.has(name))
    const committed = clients.unconfirmed.filter(({ name }) => stored.has(name))
    console.log({
      most,
      waiting: Math.max(...counts.map(({ waiting }) => waiting)),
      normalP99,
      stalledP99,
      reads: readsWhile.length,
      unreadyAfterMs: readiness.find(({ reasons }) => reasons === 'writes')?.atMs,
      recoveredMs,
      created: clients.created.length,
      unconfirmed: clients.unconfirmed.length,
      unknown: clients.unconfirmed.filter(({ outcome }) => outcome === 'unknown').length,
      committed: committed.length,
    })
    expect(most).toBeLessThanOrEqual(MAX_CONNECTIONS)
    expect(counts.some(({ waiting }) => waiting > 1)).toBe(true)
    expect(new Set(readsWhile.map(({ status }) => status))).toEqual(new Set([200]))
    expect(stalledP99).toBeLessThan(Math.max(2 * normalP99, MIN_READ_P99_MS))
    expect(readyAgain).toEqual([])
    expect(metrics).toMatch(/^muster_database_commits_waiting [1-9]/m)
    expect(metrics).toMatch(/^muster_ready\{reason="writes"\} 0$/m)
    expect(metrics).toMatch(/^muster_ready\{reason="database"\} 1$/m)
    expect(recoveredMs).toBeLessThan(RECOVERED_WITHIN_MS)
    expect(clients.failures).toEqual([])
    expect(clients.created.length).toBeGreaterThan(0)
    expect(lost).toEqual([])
    expect(committed.length).toBeGreaterThan(0)
    expect(committed.filter(({ outcome }) => outcome !== 'unknown')).toEqual([])
  },
  STALL_MS + 120_000,
)

/** A server of its own, because the setting concerns all databases. */
async function newServer() {
  const server = await startPostgres()
  return { ...server, [Symbol.asyncDispose]: server.stop }
}

const startNode = (role: 'api' | 'all', DATABASE_URL: string, environment = {}) =>
  startApp({
    role,
    database: {
      environment: { DATABASE_URL, SECRET_KEY: 'a secret key that only tests would ever use' },
      [Symbol.asyncDispose]: async () => undefined,
    },
    environment,
  })

test.skipIf(inject('database') !== 'postgres')(
  'connections are cut while their commits wait: the node ends the old ones before it opens others',
  async () => {
    await using server = await newServer()
    const databaseUrl = await server.createDatabase()
    await using proxy = await startTcpProxy(databaseUrl, 0)
    await until('the proxy listens', () =>
      connectTo(proxy.url).then(
        (probe) => probe.end().then(() => true),
        () => false,
      ),
    )
    await using node = await startNode('all', proxy.url)
    await using admin = await connectTo(server.url('postgres'))
    const client = await node.newClient()
    await setStandby(admin, 'nosuch')
    let isStopping = false
    const write = async (): Promise<void> => {
      while (!isStopping) {
        const { status } = await client.post('/participants', { full_name: 'Ada' })
        if (status !== 201) await delay(50)
      }
    }
    const writers = Array.from({ length: WRITERS }, write)
    const findCounts = async () => (await admin.query(COUNT_BACKENDS)).rows[0]
    const counts: number[] = []
    const timer = setInterval(async () => counts.push(Number((await findCounts()).all)), 100)
    for (let cut = 0; cut < CUTS; cut++) {
      await until('commits wait', async () => Number((await findCounts()).waiting) >= 4)
      proxy.cut()
      await delay(BETWEEN_CUTS_MS)
      expect((await client.get('/participants')).status).toBe(200)
    }
    clearInterval(timer)
    await setStandby(admin, '')
    isStopping = true
    await Promise.all(writers)
    console.log({ most: Math.max(...counts) })
    expect(Math.max(...counts)).toBeLessThanOrEqual(MAX_CONNECTIONS + POOLS)
    expect((await client.post('/participants', { full_name: 'Grace' })).status).toBe(201)
  },
  120_000,
)

test.skipIf(inject('database') !== 'postgres' || !isPgBouncerInstalled)(
  'through PgBouncer: a commit that waits is cancelled, so its session of PostgreSQL is free again',
  async () => {
    await using server = await newServer()
    const poolMode = 'transaction'
    await using bouncer = await startPgBouncer(server.url('postgres'), { poolMode, poolSize: 20 })
    const databaseUrl = bouncer.through(await server.createDatabase())
    const limits = { DATABASE_STATEMENT_TIMEOUT_MS: '500' }
    await using node = await startNode('api', databaseUrl, limits)
    await using admin = await connectTo(server.url('postgres'))
    const client = await node.newClient()
    await setStandby(admin, 'nosuch')
    const change = client.post('/participants', { full_name: 'Ada' })
    const countWaiting = async () => Number((await admin.query(COUNT_BACKENDS)).rows[0].waiting)
    await until('the commit waits', async () => (await countWaiting()) === 1)
    const { status, headers } = await change
    expect([status, headers.get('x-change-outcome')]).toEqual([503, 'unknown'])
    await until('no commit waits', async () => (await countWaiting()) === 0)
    await setStandby(admin, '')
    const { body } = await client.get('/participants')
    expect(body.data.map(({ full_name }: { full_name: string }) => full_name)).toEqual(['Ada'])
  },
  60_000,
)

test.skipIf(inject('database') !== 'postgres')(
  'while commits wait: two nodes count reads together, and no read waits',
  async () => {
    await using server = await newServer()
    const databaseUrl = await server.createDatabase()
    const limits = { RATE_LIMIT_PER_MINUTE: '60' }
    await using first = await startNode('api', databaseUrl, limits)
    await using second = await startNode('api', databaseUrl, limits)
    await using admin = await connectTo(server.url('postgres'))
    const account = await first.newAccount()
    await setStandby(admin, 'nosuch')
    const { result, ms } = await timed(() =>
      Promise.all(
        Array.from({ length: 80 }, (_, number) =>
          [first, second][number % 2]?.as(account).get('/participants'),
        ),
      ),
    )
    const statuses = result.map((response) => response?.status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(60)
    expect(statuses.filter((status) => status === 429)).toHaveLength(20)
    expect(ms).toBeLessThan(5_000)
    await until('the key has a last use', async () => {
      const { rows } = await second.db.read.raw('select last_used_at from api_keys')
      return rows.some(({ last_used_at: at }: { last_used_at: number | null }) => at !== null)
    })
    await setStandby(admin, '')
  },
  60_000,
)
