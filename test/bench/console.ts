/** Console: response times of the lists with a million rows, the cost of a page, and that of open
 *  pages. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { v7 as uuidv7 } from 'uuid'
import { startSession } from '../../auth/session.ts'
import { openDatabase } from '../../records/database/open.ts'
import { type WriteScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { insertRequests, type LoggedRequest, type RequestEntry } from '../../records/request-log.ts'
import { readConfig } from '../../server/config.ts'
import { layout } from '../../web/console/layout.ts'
import { requestsTable } from '../../web/console/requests/request-row.ts'
import { startChild } from './child.ts'
import { insertParticipants } from './lists.ts'
import { figure, percentile, type Result } from './result.ts'
import type { Server } from './server.ts'
import { addWebhooks, type Bench, type Environment, newAccount, withRecords } from './set-up.ts'

const ROWS = 1_000_000
const DAY_MS = 86_400_000
/** The batch size of a busy server. */
const BATCH_ROWS = 500
const MEASURED_REQUESTS = 20
/** On SQLite the goal is a response within one second. */
const MAX_P95_MS = { postgres: 300, sqlite: 1_000 }

const PAGE_SIZE = 25
const RENDERED_ROWS = 200

const OPEN_PAGES = 100
const POLL = { 'HX-Request': 'true', 'Muster-Poll': '1' }

const USERS = Array.from({ length: 20 }, () => randomUUID())
const OPERATIONS = [
  {
    operationId: 'listParticipants',
    method: 'GET',
    path: '/public/v1/participants?page[size]=100',
    status: 200,
  },
  {
    operationId: 'getParticipant',
    method: 'GET',
    path: `/public/v1/participants/${randomUUID()}`,
    status: 200,
  },
  { operationId: 'createTask', method: 'POST', path: '/public/v1/tasks', status: 201 },
  {
    operationId: 'updateTask',
    method: 'PATCH',
    path: `/public/v1/tasks/${randomUUID()}`,
    status: 200,
  },
  {
    operationId: 'deleteTask',
    method: 'DELETE',
    path: `/public/v1/tasks/${randomUUID()}`,
    status: 204,
  },
] as const
const HEADERS = JSON.stringify([
  ['content-type', 'application/json'],
  ['x-sample', 'x'.repeat(500)],
])
const BODY = JSON.stringify({
  id: randomUUID(),
  title: 'Call the library',
  description: 'x'.repeat(400),
  status: 'open',
})

export async function consolePages(bench: Bench): Promise<Result[]> {
  const environment = await bench.newEnvironment()
  const rows = bench.quick ? ROWS / 50 : ROWS
  const { accountId, webhookId, cookie } = await withRecords(environment, async (trx, config) => {
    const { scope } = await newAccount(trx)
    await addWebhooks(scope, ['https://example.com/webhooks'], config)
    await insertParticipants(scope, rows)
    const user: { id: string } = await scope.rows('users').first('id')
    const webhook: { id: string } = await scope.rows('webhooks').first('id')
    const { token } = await startSession(
      scope,
      { userId: user.id, ip: '127.0.0.1', userAgent: 'bench' },
      new Date(),
    )
    return { accountId: scope.accountId, webhookId: webhook.id, cookie: `muster-session=${token}` }
  })
  const loggingMicros = await fill(bench, environment, { accountId, webhookId, rows })

  await using server = startChild<Server>('server.ts')
  const url = await server.call('start', 'service', environment, accountId)
  const fetchPage = async (path: string, headers?: Record<string, string>): Promise<string> => {
    const { statusCode, body } = await request(`${url}/console${path}`, {
      headers: { Cookie: cookie, ...headers },
    })
    if (statusCode !== 200) throw new Error(`${path} returned ${statusCode}`)
    return body.text()
  }
  const measurePage = async (what: string, path: string): Promise<Result> => {
    bench.progress(what)
    const times: number[] = []
    // The first three requests warm up.
    for (let count = -2; count <= (bench.quick ? 5 : MEASURED_REQUESTS); count++) {
      const started = performance.now()
      await fetchPage(path)
      if (count > 0) times.push(performance.now() - started)
    }
    return figure(
      { what, unit: 'ms', goal: { atMost: MAX_P95_MS[bench.database] }, note: 'p95' },
      percentile(times, 0.95),
    )
  }
  /** CPU time of the service per second, in milliseconds. */
  const cpuDuring = async (work: () => Promise<unknown>): Promise<number> => {
    const [cpuMicros, startedAt] = [await server.call('cpuMicros'), performance.now()]
    await work()
    const spentMs = ((await server.call('cpuMicros')) - cpuMicros) / 1_000
    return (spentMs * 1_000) / (performance.now() - startedAt)
  }
  /** Of many open pages, which reload at this interval. */
  const measureOpen = async (what: string, path: string, seconds: number): Promise<Result> => {
    bench.progress(what)
    const reloads = (OPEN_PAGES / seconds) * (bench.quick ? 4 : 20)
    const reload = async (): Promise<void> => {
      const polls: Promise<string>[] = []
      for (let count = 0; count < reloads; count++) {
        polls.push(fetchPage(path, POLL))
        await delay((seconds * 1_000) / OPEN_PAGES)
      }
      await Promise.all(polls)
    }
    await cpuDuring(reload)
    const used = await cpuDuring(reload)
    const idle = await cpuDuring(() => delay(5_000))
    return figure(
      {
        what: `${OPEN_PAGES} open pages: ${what}`,
        unit: 'ms',
        goal: { atMost: 50 },
        note: 'CPU per second',
      },
      used - idle,
    )
  }
  const ofRows = `of ${rows.toLocaleString('en')}`
  return [
    await measurePage(`requests ${ofRows}, 24 h`, '/requests?range=24h'),
    await measurePage(`requests ${ofRows}, 1 h`, '/requests?range=1h'),
    await measurePage(`requests ${ofRows}, 24 h, 5xx`, '/requests?range=24h&status=5xx'),
    await measurePage(
      `requests ${ofRows}, 24 h, path without requests`,
      '/requests?range=24h&path=nowhere',
    ),
    await measurePage(`deliveries ${ofRows}`, `/webhooks/${webhookId}`),
    await measurePage(`deliveries ${ofRows}, failed`, `/webhooks/${webhookId}?state=failed`),
    await measurePage('overview', ''),
    await measurePage(`participants ${ofRows}`, '/records/participants'),
    await measurePage(
      `participants ${ofRows}, by name, last page`,
      `/records/participants?sort=full_name&page[number]=${rows / PAGE_SIZE}`,
    ),
    await measurePage(
      `participants ${ofRows}, search`,
      '/records/participants?filter[search]=zebra',
    ),
    await measureOpen('overview', '', 15),
    await measureOpen('requests', '/requests', 5),
    await measureOpen('deliveries of a webhook', `/webhooks/${webhookId}`, 3),
    figure(
      { what: 'rendering a page of 200 rows', unit: 'ms', goal: { atMost: 25 }, note: 'p95' },
      measureRendering(),
    ),
    figure(
      { what: 'script and style, kB', unit: '', goal: { atMost: 120 } },
      (await bytesOfAssets(url, await fetchPage('/requests'))) / 1_000,
    ),
    figure(
      { what: 'logging a request', unit: 'µs', note: `in batches of ${BATCH_ROWS}` },
      loggingMicros,
    ),
  ]
}

interface Filling {
  accountId: string
  webhookId: string
  rows: number
}

/** Inserts requests and deliveries of the last 24 hours. Returns microseconds per logged
 *  request. */
async function fill(
  bench: Bench,
  environment: Environment,
  { accountId, webhookId, rows }: Filling,
): Promise<number> {
  const db = openDatabase(readConfig(environment).database)
  try {
    const now = Date.now()
    const timeOf = (row: number): number => Math.floor(now - DAY_MS + (DAY_MS / rows) * row)
    let loggingMs = 0
    for (let from = 0; from < rows; from += BATCH_ROWS) {
      const size = Math.min(BATCH_ROWS, rows - from)
      const requests = Array.from({ length: size }, (_, index) =>
        newRequest(accountId, from + index, timeOf(from + index)),
      )
      const started = performance.now()
      await transaction(db, (trx) => insertRequests(trx, requests))
      loggingMs += performance.now() - started
      const deliveries = Array.from({ length: size }, (_, index) =>
        newDelivery(webhookId, from + index, timeOf(from + index)),
      )
      await transaction(db, (trx) => insertAttempted(writeScope(trx, accountId), deliveries))
      if (from % (rows / 10) === 0)
        bench.progress(`${from.toLocaleString('en')} requests and deliveries`)
    }
    if (db.dialect === 'postgres') await db.write.raw('vacuum analyze')
    return (loggingMs / rows) * 1_000
  } finally {
    await db.close()
  }
}

function newRequest(accountId: string, row: number, at: number): LoggedRequest {
  const { operationId, method, path, status } = OPERATIONS[row % OPERATIONS.length] ?? OPERATIONS[0]
  const user = USERS[row % USERS.length] ?? ''
  return {
    id: uuidv7({ msecs: at }),
    accountId,
    userId: user,
    apiKeyId: user,
    requestId: randomUUID(),
    operationId,
    method,
    path,
    status: errorStatus(row) ?? status,
    // From 3 to 150 ms.
    durationMs: 3 * 50 ** (((row * 7_919) % 1_000) / 1_000),
    ip: `192.0.2.${row % 200}`,
    requestBody: method === 'POST' || method === 'PATCH' ? BODY.slice(0, 200) : null,
    responseBody: status === 204 ? null : BODY,
    requestHeaders: HEADERS,
    responseHeaders: HEADERS,
    omittedBytes: 0,
    at,
  }
}

/** Some rows have an error status. */
function errorStatus(row: number): number | undefined {
  if (row % 499 === 0) return 500
  if (row % 37 === 0) return 422
  if (row % 23 === 0) return 404
  return undefined
}

function deliveryState(row: number): 'failed' | 'retrying' | 'delivered' {
  if (row % 200 === 0) return 'failed'
  if (row % 333 === 0) return 'retrying'
  return 'delivered'
}

/** A delivery that has had its first attempt. */
function newDelivery(webhookId: string, row: number, at: number): Record<string, unknown> {
  return {
    id: uuidv7({ msecs: at }),
    webhook_id: webhookId,
    event_type: 'task.created',
    body: Buffer.from(BODY.slice(0, 200)),
    state: deliveryState(row),
    attempts: 1,
    created_at: at,
    updated_at: at,
  }
}

/** Inserts deliveries with one attempt each. */
async function insertAttempted(
  scope: WriteScope,
  deliveries: Record<string, unknown>[],
): Promise<void> {
  await scope.insert('deliveries', deliveries)
  await scope.insert(
    'attempts',
    deliveries.map(({ id, state, created_at }) => ({
      delivery_id: id,
      number: 1,
      trigger: 'schedule',
      started_at: created_at,
      duration_ms: 80,
      outcome: state === 'delivered' ? 'success' : 'http_error',
      status: state === 'delivered' ? 200 : 503,
    })),
  )
}

/** The 95th percentile of the time that it takes to render a page of requests. */
function measureRendering(): number {
  const now = new Date()
  const rows = Array.from({ length: RENDERED_ROWS }, (_, row) => ({
    request: entryOf(newRequest('', row, now.getTime())),
    view: 'closed' as const,
  }))
  const times: number[] = []
  // The first twenty requests warm up.
  for (let count = -19; count <= 100; count++) {
    const started = performance.now()
    layout(
      { title: 'Requests', body: requestsTable(now, rows) },
      {
        path: '/console/requests',
        folder: '',
        theme: 'system',
        notice: null,
        areDeliveriesPaused: false,
        troubledWebhookCount: 0,
      },
    )
    if (count > 0) times.push(performance.now() - started)
  }
  return percentile(times, 0.95)
}

function entryOf({ userId, apiKeyId, at, ...request }: LoggedRequest): RequestEntry {
  const names = {
    user: { id: userId, fullName: 'Mara Keller' },
    apiKey: { id: apiKeyId, name: 'Storefront', tokenPrefix: 'mst_4Zqf' },
  }
  return { ...request, ...names, repeats: 0, createdAt: at }
}

/** The uncompressed bytes that a browser loads for a page. */
async function bytesOfAssets(url: string, page: string): Promise<number> {
  const paths = [...page.matchAll(/(?:src|href)="([^"]*\.(?:js|css))"/g)].map(
    ([, path = '']) => path,
  )
  const sizes = paths.map(async (path) => {
    const { body } = await request(url + path, { headers: { 'Accept-Encoding': 'identity' } })
    return (await body.bytes()).length
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}
