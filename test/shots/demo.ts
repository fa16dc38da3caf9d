/** A service with a sample account: users, keys, records, deliveries and a day of requests. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { issueApiKey } from '../../auth/api-key.ts'
import { hashPassword } from '../../auth/password.ts'
import { startSession } from '../../auth/session.ts'
import { insertAccount } from '../../records/accounts.ts'
import { countSelected } from '../../records/bulk-batches.ts'
import { insertBulkJob } from '../../records/bulk-jobs.ts'
import { migrate, withSetupLock } from '../../records/database/migrate.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import {
  accountScope,
  type Scope,
  type WriteScope,
  writeScope,
} from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { disableDeadWebhook } from '../../records/dead-webhooks.ts'
import { listDeliveries } from '../../records/deliveries.ts'
import { pauseDeliveries } from '../../records/delivery-pause.ts'
import { insertRequests } from '../../records/request-log.ts'
import { insertUser, type NewUser } from '../../records/users.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { type Config, readConfig } from '../../server/config.ts'
import { start } from '../../server/main.ts'
import { selectFailedDeliveries } from '../../webhooks/bulk.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { insertAuditLog } from './audit-log.ts'
import { createRecords } from './records.ts'
import { dayOfRequests, insertDeliveryHistory, recountAttempts } from './traffic.ts'

export interface Demo {
  url: string
  cookie: { name: string; value: string; httpOnly: boolean }
  webhookId: string
  failingWebhookId: string
  deadWebhookId: string
  bulkJobId: string
  failedDeliveryId: string
  deliveredDeliveryId: string
  requestId: string
  eventId: string
  userId: string
  /** The ID of one record of each resource, by the resource's path segment. */
  records: Record<string, string>
  pauseDeliveries(): Promise<void>
  stop(): Promise<void>
}

const DELIVERIES_END_WITHIN_MS = 60_000
const ATTEMPTS_COUNTED_WITHIN_MS = 2_000

export async function startDemo(): Promise<Demo> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-shots-'))
  const config = readConfig({
    DATA_DIR: directory,
    PORT: '0',
    LOG_LEVEL: 'error',
    BASE_URL: 'http://muster.example',
    WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
    WEBHOOK_RETRY_DELAYS: '0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1',
  })
  await withSetupLock(config.database, async () => {
    const db = openDatabase(config.database)
    await migrate(db).finally(() => db.close())
  })
  const log = pino({ level: config.logLevel }, pino.destination(2))
  const { db, url, stop } = await start(config, { log })
  const receiver = await startReceiver()
  const now = new Date()

  const { accountId, scope, ownerId, userIds } = await insertPeople(db, now)
  const analystId = userIds[0] ?? ownerId
  const keys = await transaction(db, (trx) =>
    issueKeys(writeScope(trx, accountId), ownerId, analystId, now),
  )
  const keyIds = keys.map(({ id }) => id)
  const webhookIds = await insertWebhooks(
    db,
    config,
    { accountId, ownerId, url: receiver.url },
    now,
  )

  const records = await createRecords(url, keys[0]?.token ?? '')
  const traffic = { accountId, keys: keyIds, users: [ownerId, analystId], now: now.getTime() }
  await transaction(db, (trx) => insertRequests(trx, [...dayOfRequests(traffic)]))
  await waitForDeliveries(db)
  await insertDeliveryHistory(db, now.getTime())
  // The engine counts attempts in batches. After the recount, it would count the last ones again.
  await delay(ATTEMPTS_COUNTED_WITHIN_MS)
  await recountAttempts(db)
  const [webhookId = '', , failingWebhookId = '', deadWebhookId = ''] = webhookIds
  const failingSince = await findFailingSince(db, deadWebhookId)
  await disableDeadWebhook(db, { id: deadWebhookId, accountId, failingSince }, now)
  await transaction(db, (trx) =>
    insertAuditLog(
      writeScope(trx, accountId),
      { ownerId, userIds, keyIds, webhookIds },
      now.getTime(),
    ),
  )
  return {
    url,
    cookie: {
      name: 'muster-session',
      value: await transaction(db, (trx) =>
        startSessions(writeScope(trx, accountId), ownerId, now),
      ),
      httpOnly: true,
    },
    webhookId,
    failingWebhookId,
    deadWebhookId,
    bulkJobId: await retryFailed(db, scope, failingWebhookId, ownerId),
    failedDeliveryId: await findDelivery(scope, webhookId, 'failed'),
    deliveredDeliveryId: await findDelivery(scope, webhookId, 'delivered'),
    requestId: await findRequest(db, accountId),
    eventId: await findEvent(scope, webhookId),
    userId: analystId,
    records,
    pauseDeliveries: async () => void (await pauseDeliveries(db, now)),
    async stop() {
      await stop()
      receiver.server.close()
      receiver.server.closeAllConnections()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const PEOPLE: Pick<NewUser, 'email' | 'fullName' | 'role' | 'grants' | 'permissions'>[] = [
  {
    email: 'jonas.weber@northwind.example',
    fullName: 'Jonas Weber',
    role: 'admin',
    grants: ['api_keys', 'webhooks'],
  },
  {
    email: 'priya.raman@northwind.example',
    fullName: 'Priya Raman',
    role: 'admin',
    permissions: { finance: 'write' },
  },
  { email: 'tom.okafor@northwind.example', fullName: 'Tom Okafor', role: 'member' },
]

async function insertPeople(db: Db, now: Date) {
  const passwordHash = await hashPassword('a password of the pictures')
  const account = {
    name: 'Northwind',
    email: 'mara.keller@northwind.example',
    fullName: 'Mara Keller',
    passwordHash,
  }
  const { accountId, userId: ownerId } = await transaction(db, (trx) =>
    insertAccount(trx, account, now),
  )
  const scope = accountScope({ dialect: db.dialect, sql: db.write }, accountId)
  const userIds = await transaction(db, async (trx) => {
    const ids: string[] = []
    for (const person of PEOPLE)
      ids.push(await insertUser(writeScope(trx, accountId), { ...person, passwordHash }, now))
    return ids
  })
  return { accountId, scope, ownerId, userIds }
}

async function issueKeys(
  scope: WriteScope,
  ownerId: string,
  analystId: string,
  now: Date,
): Promise<{ id: string; token: string }[]> {
  const keys: { id: string; token: string }[] = []
  for (const name of ['Storefront', 'Nightly import'])
    keys.push(await issueApiKey(scope, { userId: ownerId, name, accessLevel: 'full_access' }, now))
  const analytics = { userId: analystId, name: 'Analytics', accessLevel: 'read_only' } as const
  return [...keys, await issueApiKey(scope, analytics, now)]
}

const WEBHOOKS = [
  { path: '/shop', description: 'The shop', eventTypes: ['*'] },
  {
    path: '/crm',
    description: 'Customer relations',
    eventTypes: ['participant.created', 'participant.updated', 'job_application.created'],
  },
  { path: '/flaky', description: 'The warehouse', eventTypes: ['task.created', 'task.completed'] },
  { path: '/flaky?old', description: 'The old warehouse', eventTypes: ['task.created'] },
]

async function insertWebhooks(
  db: Db,
  { secretKeys }: Config,
  { accountId, ownerId, url }: { accountId: string; ownerId: string; url: string },
  now: Date,
): Promise<string[]> {
  const ids: string[] = []
  for (const { path, description, eventTypes } of WEBHOOKS) {
    const input = { url: url + path, description, eventTypes, createdBy: ownerId }
    const secret = newSecret()
    const seal = (id: string): string => sealSecret(secretKeys.newest(), id, secret)
    const { id } = await transaction(db, (trx) =>
      insertWebhook(writeScope(trx, accountId), input, seal, now),
    )
    ids.push(id)
  }
  return ids
}

/** Waits until every delivery has ended. */
async function waitForDeliveries(db: Db): Promise<void> {
  const deadline = Date.now() + DELIVERIES_END_WITHIN_MS
  for (;;) {
    const [row] = await db
      .read('deliveries')
      .whereIn('state', ['pending', 'retrying'])
      .count({ unfinished: '*' })
    if (Number(row?.unfinished) === 0) return
    if (Date.now() > deadline) throw new Error('The deliveries of the demo do not end.')
    await delay(100)
  }
}

async function findFailingSince(db: Db, webhookId: string): Promise<number> {
  const row: { failing_since: number } | undefined = await db
    .read('webhook_health')
    .where({ webhook_id: webhookId })
    .first('failing_since')
  return row?.failing_since ?? 0
}

async function findDelivery(
  scope: Scope,
  webhookId: string,
  state: 'failed' | 'delivered',
): Promise<string> {
  const [delivery] = await listDeliveries(scope, { webhookId, state, limit: 1 })
  return delivery?.id ?? randomUUID()
}

/** The ID of an event with a failed delivery. */
async function retryFailed(
  db: Db,
  scope: Scope,
  webhookId: string,
  createdBy: string,
): Promise<string> {
  const now = new Date()
  const selection = selectFailedDeliveries(webhookId, null, { since: new Date(0) }, now)
  const job = { selection, rate: 500, total: await countSelected(scope, selection), createdBy }
  const { id } = await transaction(db, (trx) =>
    insertBulkJob(writeScope(trx, scope.accountId), job, now),
  )
  return id
}

async function findEvent(scope: Scope, webhookId: string): Promise<string> {
  const deliveries = await listDeliveries(scope, { webhookId, state: 'failed', limit: 100 })
  return deliveries.find(({ eventId }) => eventId !== null)?.eventId ?? randomUUID()
}

/** The ID of the latest POST request. */
async function findRequest(db: Db, accountId: string): Promise<string> {
  const request: { id: string } | undefined = await db
    .read('request_log')
    .where({ account_id: accountId, method: 'POST' })
    .orderBy('created_at', 'desc')
    .first('id')
  return request?.id ?? randomUUID()
}

/** Signs the owner in on two devices. Returns the token of the first. */
async function startSessions(scope: WriteScope, userId: string, now: Date): Promise<string> {
  const firefox = 'Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0'
  const safari = 'Mozilla/5.0 (iPhone; CPU iPhone OS 20_0 like Mac OS X) Safari/605'
  const { token } = await startSession(
    scope,
    { userId, ip: '203.0.113.7', userAgent: firefox },
    now,
  )
  await startSession(scope, { userId, ip: '198.51.100.24', userAgent: safari }, now)
  return token
}

/** The endpoint of the shop fails at times and rejects some event types. Those of the warehouses
 *  always fail. */
async function startReceiver(): Promise<{ url: string; server: Server }> {
  let shopRequests = 0
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const isShop = request.url === '/shop'
    if (isShop) shopRequests++
    const isRejected = isShop && /payment\.created|task\.completed/.test(body)
    const isDown = isShop ? shopRequests % 9 < 3 : request.url?.startsWith('/flaky')
    const answer = (status: number, content: object): void => {
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify(content))
    }
    if (isRejected) answer(422, { error: 'Unknown event type.' })
    else if (isDown) answer(503, { error: 'The warehouse is closed for stocktaking.' })
    else answer(200, { ok: true })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
