/** A service of its own with an account in which things happen: people, records, webhooks that answer well and badly, a day of requests. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { v7 as uuidv7 } from 'uuid'
import { issueApiKey } from '../../auth/api-key.ts'
import { hashPassword } from '../../auth/password.ts'
import { startSession } from '../../auth/session.ts'
import { operations } from '../../generated/operations.ts'
import { insertAccount } from '../../records/accounts.ts'
import { type AuditTarget, insertAuditEntry, type NewAuditEntry } from '../../records/audit-log.ts'
import { migrate, withSetupLock } from '../../records/database/migrate.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { accountScope, type WriteScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { listDeliveries } from '../../records/deliveries.ts'
import { insertRequests, type LoggedRequest } from '../../records/request-log.ts'
import { insertUser } from '../../records/users.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { type Config, readConfig } from '../../server/config.ts'
import { start } from '../../server/main.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'

export interface Demo {
  url: string
  cookie: { name: string; value: string; httpOnly: boolean }
  webhookId: string
  failedDeliveryId: string
  deliveredId: string
  requestId: string
  userId: string
  /** A record of each resource, by the segment of its address. */
  records: Record<string, string>
  stop(): Promise<void>
}

const MINUTE = 60_000

export async function startDemo(): Promise<Demo> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-shots-'))
  const settings = {
    DATA_DIR: directory,
    PORT: '0',
    LOG_LEVEL: 'error',
    BASE_URL: 'http://muster.example',
    WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
    WEBHOOK_RETRY_DELAYS: '0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1',
  }
  const config: Config = readConfig(settings)
  await withSetupLock(config.database, async () => {
    const db = openDatabase(config.database)
    await migrate(db).finally(() => db.close())
  })
  const running = await start(config, {
    log: pino({ level: config.logLevel }, pino.destination(2)),
  })
  const receiver = await startReceiver()
  const now = new Date()

  const { db, url } = running
  const passwordHash = await hashPassword('a password of the pictures')
  const owner = {
    name: 'Northwind',
    email: 'mara.keller@northwind.example',
    fullName: 'Mara Keller',
    passwordHash,
  }
  const { accountId, userId: ownerId } = await transaction(db, (trx) =>
    insertAccount(trx, owner, now),
  )
  const scope = accountScope({ dialect: db.dialect, sql: db.write }, accountId)
  const people = [
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
  ] as const
  const userIds: string[] = []
  for (const person of people)
    userIds.push(
      await insertUser(
        scope,
        { ...person, grants: 'grants' in person ? [...person.grants] : [], passwordHash },
        now,
      ),
    )
  const keys: { id: string; token: string }[] = []
  for (const name of ['Storefront', 'Nightly import', 'Analytics'])
    keys.push(
      await issueApiKey(
        scope,
        {
          userId: name === 'Analytics' ? (userIds[0] ?? ownerId) : ownerId,
          name,
          accessLevel: name === 'Analytics' ? 'read_only' : 'full_access',
        },
        now,
      ),
    )
  const webhookIds: string[] = []
  for (const [path, description, eventTypes] of [
    ['/shop', 'The shop', ['*']],
    [
      '/crm',
      'Customer relations',
      ['participant.created', 'participant.updated', 'job_application.created'],
    ],
    ['/flaky', 'The warehouse', ['task.created', 'task.completed']],
  ] as const) {
    const given = {
      url: `${receiver.url}${path}`,
      description,
      eventTypes: [...eventTypes],
      createdBy: ownerId,
    }
    const secret = newSecret()
    const seal = (id: string): string => sealSecret(config.secretKey, id, secret)
    webhookIds.push(
      (await transaction(db, (trx) => insertWebhook(writeScope(trx, accountId), given, seal, now)))
        .id,
    )
  }

  const key = keys[0]?.token ?? ''
  const records = await makeRecords(url, key)
  const trafficOf = {
    accountId,
    keys: keys.map(({ id }) => id),
    users: [ownerId, userIds[0] ?? ownerId],
    now: now.getTime(),
  }
  await insertRequests(db.write, [...dayOfRequests(trafficOf)])
  await delay(4_000)
  await addHistory(db, now.getTime())
  await transaction(db, (trx) =>
    insertAudited(
      writeScope(trx, accountId),
      { ownerId, userIds, keyIds: keys.map(({ id }) => id), webhookIds },
      now.getTime(),
    ),
  )

  const [webhookId = ''] = webhookIds
  const findDelivery = async (state: 'failed' | 'delivered'): Promise<string> =>
    (await listDeliveries(scope, { webhookId, state, limit: 1 }))[0]?.id ?? randomUUID()
  const request: { id: string } | undefined = await db
    .read('request_log')
    .where({ account_id: accountId, method: 'POST' })
    .orderBy('created_at', 'desc')
    .first('id')
  const session = await startSession(
    scope,
    {
      userId: ownerId,
      ip: '203.0.113.7',
      userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0',
    },
    now,
  )
  await startSession(
    scope,
    {
      userId: ownerId,
      ip: '198.51.100.24',
      userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 20_0 like Mac OS X) Safari/605',
    },
    now,
  )
  return {
    url,
    cookie: { name: 'muster-session', value: session.token, httpOnly: true },
    webhookId,
    failedDeliveryId: await findDelivery('failed'),
    deliveredId: await findDelivery('delivered'),
    requestId: request?.id ?? randomUUID(),
    userId: userIds[0] ?? ownerId,
    records,
    async stop() {
      await running.stop()
      receiver.server.close()
      receiver.server.closeAllConnections()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Answers as its address says: the shop not always, and never to what it cannot read. */
async function startReceiver(): Promise<{ url: string; server: Server }> {
  let shop = 0
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const isDown = request.url === '/flaky' || (request.url === '/shop' && ++shop % 9 < 3)
    const isUnread = request.url === '/shop' && /payment\.created|task\.completed/.test(body)
    response.writeHead(isUnread ? 422 : isDown ? 503 : 200, { 'Content-Type': 'application/json' })
    response.end(
      isUnread
        ? '{"error":"Unknown event type."}'
        : isDown
          ? '{"error":"The warehouse is closed for stocktaking."}'
          : '{"ok":true}',
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const NAMES = [
  'Ada Lovelace',
  'Grace Hopper',
  'Katherine Johnson',
  'Alan Turing',
  'Annie Easley',
  'Edsger Dijkstra',
  'Radia Perlman',
  'Jean Bartik',
  'Mary Jackson',
  'Tim Berners-Lee',
  'Barbara Liskov',
  'Donald Knuth',
]

async function makeRecords(url: string, key: string): Promise<Record<string, string>> {
  async function make(path: string, body: object, method = 'POST'): Promise<string> {
    const response = await fetch(`${url}/public/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return ((await response.json()) as { id: string }).id
  }
  const participants: string[] = []
  for (const [index, full_name] of NAMES.entries()) {
    const email = `${full_name.toLowerCase().replace(/\W+/g, '.')}@example.com`
    participants.push(
      await make('/participants', {
        full_name,
        email,
        tags: index % 3 === 0 ? ['vip', 'berlin'] : ['berlin'],
        phone: index % 2 === 0 ? '+49 30 1234567' : null,
      }),
    )
  }
  const tasks: string[] = []
  for (const [index, title] of [
    'Call back',
    'Check references',
    'Send the contract',
    'Collect the laptop',
    'Plan the first day',
  ].entries())
    tasks.push(
      await make('/tasks', {
        title,
        participant_id: participants[index],
        due_at: new Date(Date.now() + (index - 2) * 24 * 60 * MINUTE).toISOString(),
      }),
    )
  await make(`/tasks/${tasks[1]}`, { status: 'completed' }, 'PATCH')
  const job = await make('/jobs', {
    title: 'Barista, Kreuzberg',
    description: 'Mornings, four days a week. Coffee is free, and so is the advice of our guests.',
    status: 'open',
    screening_questions: [
      {
        key: 'permit',
        label: 'Do you have a work permit?',
        requirement: 'must_have',
        expected: true,
      },
      {
        key: 'latte_art',
        label: 'Can you draw a heart?',
        requirement: 'nice_to_have',
        expected: 'yes',
      },
    ],
  })
  await make('/jobs', {
    title: 'Night porter',
    description: 'Somebody has to be awake.',
    status: 'draft',
  })
  let application = ''
  for (const [index, participant_id] of participants.slice(0, 5).entries())
    application = await make('/job-applications', {
      job_id: job,
      participant_id,
      answers: { permit: index !== 2, latte_art: index % 2 === 0 ? 'yes' : 'no' },
    })
  let payment = ''
  for (const [index, participant_id] of participants.slice(0, 4).entries())
    payment = await make('/payments', {
      participant_id,
      task_id: tasks[index],
      amount_minor: 12_500 + index * 1_750,
      currency: 'EUR',
      note: 'Travel costs',
    })
  const made = await make('/exports', { resource: 'participants', format: 'csv' })
  return {
    participants: participants[0] ?? '',
    tasks: tasks[0] ?? '',
    jobs: job,
    'job-applications': application,
    payments: payment,
    exports: made,
  }
}

/** A day of deliveries: copies of those that were made, more by day than by night. */
async function addHistory(db: Db, now: number): Promise<void> {
  const made: { id: string }[] = await db.read('deliveries').orderBy('id')
  const attempts: { delivery_id: string }[] = await db.read('attempts')
  for (
    let minute = 24 * 60;
    minute > 30;
    minute -= 4 + Math.round(20 * Math.sin((minute / (24 * 60)) * Math.PI) ** 2)
  ) {
    const original = made[(minute * 7) % made.length]
    const at = now - minute * MINUTE
    const id = uuidv7({ msecs: at })
    await db.write('deliveries').insert({ ...original, id, created_at: at, updated_at: at })
    for (const attempt of attempts.filter(({ delivery_id }) => delivery_id === original?.id))
      await db.write('attempts').insert({ ...attempt, delivery_id: id, started_at: at })
  }
}

interface Made {
  ownerId: string
  userIds: string[]
  keyIds: string[]
  webhookIds: string[]
}

async function insertAudited(
  scope: WriteScope,
  { ownerId, userIds, keyIds, webhookIds }: Made,
  now: number,
): Promise<void> {
  const mara = { id: ownerId, fullName: 'Mara Keller' }
  const jonas = { id: userIds[0] ?? '', fullName: 'Jonas Weber' }
  const [key, webhook] = [
    (index: number) => keyIds[index] ?? '',
    (index: number) => webhookIds[index] ?? '',
  ]
  const about = (type: AuditTarget['type'], id: string, name: string): AuditTarget => ({
    type,
    id,
    name,
  })
  const entries: [minutesAgo: number, Omit<NewAuditEntry, 'ip'>][] = [
    [
      7_200,
      {
        user: mara,
        action: 'api_key.created',
        target: about('api_key', key(0), 'Storefront'),
        details: { access_level: 'full_access' },
      },
    ],
    [
      7_195,
      {
        user: mara,
        action: 'webhook.created',
        target: about('webhook', webhook(0), 'The shop'),
        details: { event_types: '*' },
      },
    ],
    [
      5_760,
      {
        user: mara,
        action: 'user.invited',
        target: about('user', jonas.id, 'Jonas Weber'),
        details: { role: 'admin' },
      },
    ],
    [
      5_000,
      { user: jonas, action: 'session.started', target: about('user', jonas.id, 'Jonas Weber') },
    ],
    [
      4_320,
      {
        user: jonas,
        action: 'api_key.created',
        target: about('api_key', key(2), 'Analytics'),
        details: { access_level: 'read_only' },
      },
    ],
    [
      2_880,
      {
        user: jonas,
        action: 'webhook.disabled',
        target: about('webhook', webhook(2), 'The warehouse'),
      },
    ],
    [
      2_860,
      {
        user: jonas,
        action: 'webhook.enabled',
        target: about('webhook', webhook(2), 'The warehouse'),
      },
    ],
    [
      300,
      {
        user: mara,
        action: 'webhook.secret_revealed',
        target: about('webhook', webhook(0), 'The shop'),
      },
    ],
    [12, { user: mara, action: 'session.started', target: about('user', ownerId, 'Mara Keller') }],
  ]
  for (const [minutesAgo, entry] of entries) {
    const ip = entry.user === mara ? '203.0.113.7' : '198.51.100.24'
    await insertAuditEntry(scope, { ...entry, ip }, new Date(now - minutesAgo * MINUTE))
  }
}

interface Traffic {
  accountId: string
  keys: string[]
  users: string[]
  now: number
}

/** More by day than by night, with an hour ago a quarter of an hour in which the service was not well. */
function* dayOfRequests({ accountId, keys, users, now }: Traffic): Generator<LoggedRequest> {
  const kinds = Object.entries(operations).filter(
    ([, { method }]) => method === 'get' || method === 'post',
  )
  let seed = 7
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed / 2_147_483_647
  }
  for (let minute = 24 * 60; minute > 0; minute--) {
    const load = 2 + 3 * Math.sin((minute / (24 * 60)) * 2 * Math.PI) ** 2
    const isUnwell = minute > 25 && minute < 34
    for (let index = 0; index < load + random() * 3; index++) {
      const [operationId, { method, path, success }] = kinds[
        Math.floor(random() ** 2 * kinds.length)
      ] ??
        kinds[0] ?? ['listParticipants', operations.listParticipants]
      const chance = random()
      const status =
        isUnwell && chance < 0.4
          ? 503
          : chance < 0.03
            ? 422
            : chance < 0.05
              ? 404
              : chance < 0.055
                ? 429
                : success
      const which = Math.floor(random() * keys.length)
      yield {
        accountId,
        userId: users[which === 2 ? 1 : 0] ?? '',
        apiKeyId: keys[which] ?? '',
        requestId: randomUUID(),
        operationId,
        method: method.toUpperCase(),
        path: path.replace(/\{.*?\}/g, () => randomUUID()),
        status,
        durationMs: Math.round((3 + random() ** 4 * (isUnwell ? 900 : 120)) * 100) / 100,
        ip: which === 2 ? '2001:db8::7' : '203.0.113.40',
        requestBody:
          method === 'post'
            ? '{"full_name":"Ada Lovelace","email":"ada@example.com","tags":["vip"]}'
            : null,
        responseBody:
          status < 300
            ? '{"id":"0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11","full_name":"Ada Lovelace","status":"active"}'
            : '{"message":"The given data was invalid.","errors":{"email":["must be an email address."]}}',
        at: now - minute * MINUTE + Math.floor(random() * MINUTE),
      }
    }
  }
}
