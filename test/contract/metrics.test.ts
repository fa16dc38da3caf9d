/** What an operator sees at /metrics, on both databases. */
import { expect, inject, test } from 'vitest'
import { startApp, type TestApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { subscribe } from './subscribe.ts'

const DAY_MS = 86_400_000

const isPostgres = inject('database') === 'postgres'

/** The value of each sample by its name and labels. */
async function readMetrics(app: TestApp): Promise<Map<string, number>> {
  const { text } = await app.call('GET', '/metrics')
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    samples.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))]
    }),
  )
}

async function untilDelivered(app: TestApp): Promise<Map<string, number>> {
  return until('a delivery has ended', async () => {
    const metrics = await readMetrics(app)
    return metrics.get('muster_deliveries_ended_total{state="delivered"}') === 1 && metrics
  })
}

/** Causes one delivery to a new webhook. Returns the ID of the webhook. */
async function deliverOne(app: TestApp, url: string): Promise<string> {
  const account = await app.newAccount()
  const webhookId = await subscribe(app, account, url)
  await app.as(account).post('/participants', { full_name: 'Ada' })
  return webhookId
}

test('every metric of the service has a help text', async () => {
  await using app = await startApp({ role: 'all' })
  const { text } = await app.call('GET', '/metrics')
  const names = [...text.matchAll(/^# TYPE (muster_\w+) /gm)].map(([, name]) => name)
  expect(names.length).toBeGreaterThan(20)
  for (const name of names) expect(text).toMatch(new RegExp(`^# HELP ${name} [A-Z].{10,}\\.$`, 'm'))
})

test('a delivered delivery is observed with its attempt and the delay of its first attempt', async () => {
  await using receiver = await startReceiver({ answers: [{ afterMs: 50 }] })
  await using app = await startApp({ role: 'all' })
  await deliverOne(app, receiver.url)
  const metrics = await untilDelivered(app)
  expect(metrics.get('muster_delivery_attempt_duration_seconds_count{outcome="success"}')).toBe(1)
  expect(
    metrics.get('muster_delivery_attempt_duration_seconds_sum{outcome="success"}'),
  ).toBeGreaterThanOrEqual(0.05)
  expect(metrics.get('muster_delivery_first_attempt_delay_seconds_count')).toBe(1)
  expect(metrics.get('muster_delivery_first_attempt_delay_seconds_sum')).toBeLessThan(30)
  expect(metrics.get('muster_delivery_results_waiting')).toBe(0)
})

test('a hanging endpoint shows as attempts in flight, due attempts in the queue and pending deliveries', async () => {
  await using receiver = await startReceiver({ answers: ['hang'] })
  await using app = await startApp({ role: 'all', config: { webhookTimeoutMs: 12_000 } })
  const account = await app.newAccount()
  await subscribe(app, account, receiver.url)
  const client = app.as(account)
  const creations = Array.from({ length: 24 }, () => client.post('/tasks', { title: 'A task' }))
  await Promise.all(creations)
  // A new endpoint may have 16 attempts in flight.
  const expected = {
    muster_delivery_attempts_in_flight: 16,
    muster_delivery_queue_depth: 8,
    'muster_deliveries{state="pending"}': 24,
    'muster_deliveries{state="failed"}': 0,
  }
  await until('the counts are up to date', async () => {
    const metrics = await readMetrics(app)
    return Object.entries(expected).every(([name, count]) => metrics.get(name) === count)
  })
})

test('a worker reports that it leads and listens, and how it uses its connection pools', async () => {
  await using app = await startApp({ role: 'all' })
  await app.newAccount()
  const metrics = await until('the worker leads', async () => {
    const current = await readMetrics(app)
    return current.get('muster_delivery_leader') === 1 && current
  })
  expect(metrics.get('muster_delivery_listen_connected')).toBe(isPostgres ? 1 : undefined)
  // The default sizes.
  const pools = isPostgres ? { read: 4, write: 8, queue: 6 } : { read: 4, write: 1 }
  for (const [pool, max] of Object.entries(pools)) {
    expect(metrics.get(`muster_database_pool_max{pool="${pool}"}`)).toBe(max)
    expect(metrics.get(`muster_database_pool_used{pool="${pool}"}`)).toBeLessThanOrEqual(max)
    expect(metrics.get(`muster_database_pool_waiting{pool="${pool}"}`)).toBeGreaterThanOrEqual(0)
  }
  expect(metrics.get('muster_database_size_bytes')).toBeGreaterThan(100_000)
  expect(metrics.get('muster_database_wal_bytes')).toBeGreaterThan(0)
  // The server of the tests accepts 300 connections, and reserves 3 for superusers.
  expect(metrics.get('muster_database_connections_max')).toBe(isPostgres ? 297 : undefined)
  expect(metrics.get('muster_database_commits_waiting')).toBe(isPostgres ? 0 : undefined)
  if (isPostgres) expect(metrics.get('muster_database_connections')).toBeGreaterThan(2)
})

test.runIf(isPostgres)(
  'a value that cannot be read in time is missing, and the others arrive',
  async () => {
    await using app = await startApp({ role: 'all' })
    const name = 'muster_bulk_jobs_paused'
    expect((await readMetrics(app)).get(name)).toBe(0)
    await app.db.write.transaction(async (trx) => {
      await trx.raw('lock table bulk_jobs in access exclusive mode')
      const startedAt = performance.now()
      const metrics = await readMetrics(app)
      expect(performance.now() - startedAt).toBeLessThan(8_000)
      expect(metrics.has(name)).toBe(false)
      expect(metrics.get('muster_ready{reason="database"}')).toBe(1)
    })
    expect((await readMetrics(app)).get(name)).toBe(0)
  },
)

test('a signing secret that cannot be read counts as an error, and pauses its webhook', async () => {
  await using receiver = await startReceiver()
  await using app = await startApp({ role: 'all' })
  const before = (await readMetrics(app)).get('muster_secret_read_errors_total') ?? Number.NaN
  const account = await app.newAccount()
  const id = await subscribe(app, account, receiver.url)
  await app.db.write('webhooks').where({ id }).update({ secret_encrypted: 'v1.AAAA' })
  await app.as(account).post('/participants', { full_name: 'Ada' })
  await until('the webhook is paused', async () => {
    const metrics = await readMetrics(app)
    const errors = metrics.get('muster_secret_read_errors_total') ?? Number.NaN
    return metrics.get('muster_delivery_paused_webhooks') === 1 && errors > before
  })
  expect(receiver.requests).toEqual([])
})

test.runIf(isPostgres)(
  'LISTEN counts as connected again after its connection was cut',
  async () => {
    await using app = await startApp({ role: 'all' })
    const isConnected = async () => (await readMetrics(app)).get('muster_delivery_listen_connected')
    expect(await isConnected()).toBe(1)
    await app.db.write.raw(
      `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and query ilike 'listen%'`,
    )
    await until('the loss shows', async () => (await isConnected()) === 0)
    await until('the connection is back', async () => (await isConnected()) === 1)
  },
)

test('retention reports its last run and the rows that it removed', async () => {
  let now = new Date()
  await using receiver = await startReceiver()
  await using app = await startApp({ role: 'all', now: () => now })
  await deliverOne(app, receiver.url)
  await untilDelivered(app)
  const inThreeMonths = new Date(Date.now() + 91 * DAY_MS)
  // As if the service had run until then: otherwise the jump would put the clock in doubt.
  const ranMs = 91 * DAY_MS
  const ran = { marked_at: inThreeMonths.getTime(), steady_ms: ranMs, seen_ms: ranMs }
  await app.db.write('clock_spans').update(ran)
  await app.stop()
  now = inThreeMonths
  await using later = await startApp({ role: 'all', database: app.database, now: () => now })
  const metrics = await until('retention has run', async () => {
    const current = await readMetrics(later)
    return current.has('muster_retention_last_run_timestamp_seconds{kind="retention"}') && current
  })
  expect(metrics.get('muster_retention_last_run_timestamp_seconds{kind="retention"}')).toBe(
    now.getTime() / 1000,
  )
  for (const table of ['events', 'deliveries', 'attempts'])
    expect(metrics.get(`muster_retention_rows_removed_total{table="${table}"}`), table).toBe(1)
})

test('paused bulk jobs are counted', async () => {
  await using receiver = await startReceiver()
  await using app = await startApp({ role: 'all' })
  expect((await readMetrics(app)).get('muster_bulk_jobs_paused')).toBe(0)
  const webhookId = await deliverOne(app, receiver.url)
  const { account_id } = await app.db.read('webhooks').where({ id: webhookId }).first('account_id')
  const at = Date.now()
  await app.db.write('bulk_jobs').insert({
    id: '019ab000-0000-7000-8000-000000000001',
    account_id,
    webhook_id: webhookId,
    kind: 'send_missed',
    state: 'paused',
    since: at,
    until: at,
    rate: 50,
    total: 0,
    stage: 'missed',
    cursor: webhookId,
    next_at: at,
    created_at: at,
    updated_at: at,
  })
  expect((await readMetrics(app)).get('muster_bulk_jobs_paused')).toBe(1)
})

test('waiting entries of the request log and the version are reported by API nodes, too', async () => {
  await using app = await startApp()
  const account = await app.newAccount()
  await app.as(account).get('/tasks')
  const metrics = await readMetrics(app)
  expect(metrics.get('muster_request_log_waiting')).toBeGreaterThanOrEqual(0)
  expect(metrics.get('muster_request_log_dropped_total')).toBe(0)
  const buildInfo = [...metrics].filter(([name]) => name.startsWith('muster_build_info{'))
  expect(buildInfo).toEqual([[expect.stringMatching(/version="\d+\.\d+\.\d+",node="24\./), 1]])
})

test('in production without METRICS_PORT there are no metrics', async () => {
  await using app = await startApp({ environment: { NODE_ENV: 'production' } })
  for (const path of ['/metrics', '/violations'])
    expect((await app.call('GET', path)).status, path).toBe(404)
  expect((await app.call('GET', '/healthz')).status).toBe(200)
})

test('with METRICS_PORT the metrics are on that port only', async () => {
  await using app = await startApp({ environment: { METRICS_PORT: '0' } })
  const url = `http://127.0.0.1:${app.metricsPort}`
  expect(url).not.toBe(app.url)
  for (const path of ['/metrics', '/violations']) {
    expect((await app.call('GET', path)).status, path).toBe(404)
    expect((await fetch(url + path)).status, path).toBe(200)
  }
  expect((await app.call('GET', '/healthz')).status).toBe(200)
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect((await fetch(`${url}/public/v1/tasks`)).status).toBe(404)
})
