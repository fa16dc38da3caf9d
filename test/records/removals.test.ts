/** Each rule removes the outdated rows of its table, and no others. test/webhooks/retention.test.ts
 *  tests events, deliveries and attempts; test/handlers/exports.test.ts the files of exports. */
import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { prepareSecret } from '../../records/webhook-secrets.ts'
import { deleteWebhook, findWebhookNames, updateWebhook } from '../../records/webhooks.ts'
import { sharedApp, startApp, type TestAccount, type TestApp, until } from '../helpers.ts'
import { runHousekeeping } from '../housekeeping.ts'
import { newTenant } from '../webhooks/harness.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let account: TestAccount
const app = sharedApp()
beforeAll(async () => {
  account = await app.newAccount()
})

const ago = (ms: number): number => Date.now() - ms
const daysAgo = (days: number): number => ago(days * DAY_MS)

/** Inserts a row with an ID of its age, and returns the ID. */
async function insert(table: string, createdAt: number, columns: object): Promise<string> {
  const id = uuidv7({ msecs: createdAt })
  await transaction(app.db, (trx) =>
    writeScope(trx, account.accountId).insert(table, { id, created_at: createdAt, ...columns }),
  )
  return id
}

const idsOf = async (table: string): Promise<string[]> =>
  app.db.read(table).where({ account_id: account.accountId }).pluck('id')

const newExport = (finishedDaysAgo: number, columns: object = {}): Promise<string> =>
  insert('exports', daysAgo(finishedDaysAgo), {
    resource: 'tasks',
    format: 'csv',
    filters: '{}',
    status: 'failed',
    updated_at: daysAgo(finishedDaysAgo),
    ...columns,
  })

const newBulkJob = (endedDaysAgo: number, columns: object = {}): Promise<string> =>
  insert('bulk_jobs', daysAgo(endedDaysAgo), {
    kind: 'retry_failed',
    since: 0,
    until: 1,
    rate: 50,
    state: 'completed',
    total: 1,
    stage: 'failed',
    cursor: randomUUID(),
    next_at: 0,
    ended_at: daysAgo(endedDaysAgo),
    updated_at: daysAgo(endedDaysAgo),
    ...columns,
  })

const newWebhook = (columns: object = {}): Promise<string> =>
  insert('webhooks', daysAgo(200), {
    url: 'https://example.com/',
    description: 'Billing',
    event_types: '["*"]',
    enabled: false,
    ordering: 'none',
    secret_encrypted: '',
    updated_at: daysAgo(200),
    ...columns,
  })

describe('every minute', () => {
  test('idempotency keys: 24 hours after the first request', async () => {
    const client = app.as(account)
    const headers = { 'Idempotency-Key': 'old' }
    const first = await client.post('/tasks', { title: 'Call' }, headers)
    await client.post('/tasks', { title: 'Call' }, { 'Idempotency-Key': 'young' })
    await app.db
      .write('idempotency_keys')
      .where({ key: 'old' })
      .update({ expires_at: ago(1) })
    expect(await runHousekeeping(app, 'minute')).toMatchObject({ idempotency_keys: 1 })
    expect(await app.db.read('idempotency_keys').pluck('key')).toEqual(['young'])
    const second = await client.post('/tasks', { title: 'Call' }, headers)
    expect(second).toMatchObject({ status: 201 })
    expect(second.body.id).not.toBe(first.body.id)
  })

  test('sessions: 30 days after the sign-in', async () => {
    const newSession = (expiresAt: number): Promise<string> =>
      insert('sessions', daysAgo(30), {
        user_id: account.userId,
        token_hash: randomUUID(),
        ip: '192.0.2.1',
        user_agent: '',
        last_seen_at: expiresAt - DAY_MS,
        expires_at: expiresAt,
      })
    await newSession(ago(1))
    const young = await newSession(Date.now() + DAY_MS)
    expect(await runHousekeeping(app, 'minute')).toMatchObject({ sessions: 1 })
    expect(await idsOf('sessions')).toEqual([young])
  })

  test('the request log: after 30 days, in several batches', async () => {
    const api_key_id = randomUUID()
    const request = {
      user_id: account.userId,
      api_key_id,
      status: 200,
      duration_ms: 1,
      ip: '',
      method: 'GET',
      path: '/',
      request_id: '',
    }
    // More than two batches of 100 rows.
    const rows = Array.from({ length: 250 }, () => ({
      id: uuidv7(),
      account_id: account.accountId,
      created_at: daysAgo(30) - 1_000,
      ...request,
    }))
    await app.db.write.batchInsert('request_log', rows, 50)
    const young = await insert('request_log', daysAgo(30) + 60_000, request)
    expect(await runHousekeeping(app, 'minute')).toMatchObject({ request_log: 250 })
    const ids = await app.db.read('request_log').where({ api_key_id }).pluck('id')
    expect(ids).toEqual([young])
  })

  test.runIf(inject('database') === 'postgres')(
    'counts of rate limits: a minute after their window',
    async () => {
      await app.db.write('rate_limits').insert([
        { key: 'old', points: 1, expire: ago(61_000) },
        { key: 'young', points: 1, expire: ago(1_000) },
      ])
      expect(await runHousekeeping(app, 'minute')).toMatchObject({ rate_limits: 1 })
      const keys: string[] = await app.db.read('rate_limits').pluck('key')
      expect(keys).toContain('young')
      expect(keys).not.toContain('old')
    },
  )
})

describe('every hour', () => {
  test('exports: 90 days after they finished, and never before their file', async () => {
    const withFile = { status: 'completed', expires_at: daysAgo(1) }
    await newExport(91)
    await newExport(91, { ...withFile, file_removed_at: daysAgo(1) })
    const stay = [
      await newExport(89),
      await newExport(91, withFile),
      await newExport(91, { status: 'processing' }),
      await newExport(91, { updated_at: daysAgo(89) }),
    ]
    expect(await runHousekeeping(app, 'hour')).toMatchObject({ exports: 2 })
    expect((await idsOf('exports')).toSorted()).toEqual(stay.toSorted())
  })

  test('bulk jobs: 90 days after they ended, except the last that sent missed events', async () => {
    const webhookId = await newWebhook({ enabled: true, disabled_at: daysAgo(100) })
    const sendMissed = { kind: 'send_missed', webhook_id: webhookId }
    await newBulkJob(91)
    // Before the webhook was last disabled.
    await newBulkJob(101, sendMissed)
    const stay = [
      await newBulkJob(99, sendMissed),
      await newBulkJob(89),
      await newBulkJob(91, { state: 'paused', ended_at: null }),
    ]
    expect(await runHousekeeping(app, 'hour')).toMatchObject({ bulk_jobs: 2 })
    expect((await idsOf('bulk_jobs')).toSorted()).toEqual(stay.toSorted())
  })

  test('deleted webhooks: a day after the deletion, without deliveries and bulk jobs', async () => {
    const before = await idsOf('webhooks')
    const deleted = { deleted_at: daysAgo(2) }
    await newWebhook(deleted)
    const withDelivery = await newWebhook(deleted)
    const deliveryId = await insert('deliveries', daysAgo(2), {
      webhook_id: withDelivery,
      event_type: 'webhook.test',
      body: Buffer.from('{}'),
      state: 'delivered',
      updated_at: daysAgo(2),
    })
    const withJob = await newWebhook(deleted)
    await newBulkJob(2, { webhook_id: withJob })
    const stay = [
      withDelivery,
      withJob,
      await newWebhook(),
      await newWebhook({ deleted_at: ago(DAY_MS - 60_000) }),
    ]
    expect(await runHousekeeping(app, 'hour')).toMatchObject({ webhooks: 1 })
    expect((await idsOf('webhooks')).toSorted()).toEqual([...before, ...stay].toSorted())
    await app.db.write('deliveries').where({ id: deliveryId }).delete()
    const counts = () => app.db.read('record_counts').where({ value: withDelivery })
    expect(await counts()).not.toEqual([])
    expect(await runHousekeeping(app, 'hour')).toMatchObject({ webhooks: 1 })
    expect(await idsOf('webhooks')).not.toContain(withDelivery)
    expect(await counts()).toEqual([])
  })

  test('the deletion of a webhook erases its secrets, and its deliveries stay readable', async () => {
    const tenant = await newTenant(app)
    const webhookId = await tenant.subscribe('https://example.com/')
    const delivery = await tenant.emitOne()
    await tenant.write(async (own) => {
      await prepareSecret(own, webhookId, 'next', new Date())
      await updateWebhook(own, webhookId, { headers: { 'X-Api-Key': 'sealed' } }, new Date())
      await deleteWebhook(own, webhookId, new Date())
    })
    const secrets = await app.db
      .read('webhooks')
      .where({ id: webhookId })
      .first('secret_encrypted', 'next_secret_encrypted', 'headers_encrypted')
    expect(secrets).toEqual({
      secret_encrypted: '',
      next_secret_encrypted: null,
      headers_encrypted: '{}',
    })
    await runHousekeeping(app, 'hour')
    expect(await tenant.find(delivery.id)).toMatchObject({ webhookId, state: 'failed' })
    expect(await findWebhookNames(tenant.scope, [webhookId])).toEqual(
      new Map([[webhookId, 'example.com/']]),
    )
  })

  test('revoked keys: after 400 days, if no entry of the request log names them', async () => {
    const newKey = (columns: object): Promise<string> =>
      insert('api_keys', daysAgo(500), {
        user_id: account.userId,
        name: 'Old',
        access_level: 'read_only',
        token_hash: randomUUID(),
        token_prefix: 'mst_',
        updated_at: daysAgo(500),
        ...columns,
      })
    const before = await idsOf('api_keys')
    await newKey({ revoked_at: daysAgo(401) })
    await newKey({ revoked_at: daysAgo(401), last_used_at: daysAgo(31) })
    const stay = [
      await newKey({ last_used_at: daysAgo(450) }),
      await newKey({ revoked_at: daysAgo(399) }),
      await newKey({ revoked_at: daysAgo(401), last_used_at: daysAgo(29) }),
    ]
    expect(await runHousekeeping(app, 'hour')).toMatchObject({ api_keys: 2 })
    expect((await idsOf('api_keys')).toSorted()).toEqual([...before, ...stay].toSorted())
  })

  test('invitations: 30 days after the link expired', async () => {
    for (const [tokenHash, days] of [
      ['old', 31],
      ['young', 29],
    ] as const) {
      const { userId } = await app.newUser(account.accountId)
      await app.db.write('invitations').insert({
        token_hash: tokenHash,
        account_id: account.accountId,
        user_id: userId,
        expires_at: daysAgo(days),
        created_at: daysAgo(days + 7),
      })
    }
    expect(await runHousekeeping(app, 'hour')).toMatchObject({ invitations: 1 })
    expect(await app.db.read('invitations').pluck('token_hash')).toEqual(['young'])
  })

  test('the audit log: after 400 days', async () => {
    const entry = {
      user_name: 'Mara',
      action: 'account.renamed',
      target_type: 'account',
      target_id: account.accountId,
      target_name: 'Northwind',
      details: '{}',
    }
    await insert('audit_log', daysAgo(401), entry)
    const young = await insert('audit_log', daysAgo(399), entry)
    expect(await runHousekeeping(app, 'hour')).toMatchObject({ audit_log: 1 })
    expect(await idsOf('audit_log')).toEqual([young])
  })
})

describe('a run', () => {
  const oldEntry = {
    user_name: 'Mara',
    action: 'account.renamed',
    target_type: 'account',
    target_id: randomUUID(),
    target_name: 'Northwind',
    details: '{}',
  }

  test.runIf(inject('database') === 'postgres')(
    'removes nothing while another node removes rows by the same schedule',
    async () => {
      const old = await insert('audit_log', daysAgo(401), oldEntry)
      await transaction(app.db, async ({ sql }) => {
        // The lock of server/housekeeping.ts for the run of every hour.
        await sql.raw('select pg_advisory_xact_lock(7305518842)')
        expect(await runHousekeeping(app, 'hour')).toEqual({})
      })
      expect(await idsOf('audit_log')).toContain(old)
      expect(await runHousekeeping(app, 'hour')).toMatchObject({ audit_log: 1 })
    },
  )

  test('removes nothing while the clock is in doubt', async () => {
    await insert('audit_log', daysAgo(401), oldEntry)
    await app.as(account).post('/tasks', { title: 'Call' }, { 'Idempotency-Key': 'doubt' })
    await app.db.write('idempotency_keys').update({ expires_at: ago(1) })
    const doubt = { isInDoubt: true }
    expect(await runHousekeeping(app, 'minute', doubt)).toEqual({})
    expect(await runHousekeeping(app, 'hour', doubt)).toEqual({})
    expect(await runHousekeeping(app, 'minute')).toHaveProperty('idempotency_keys')
    expect(await runHousekeeping(app, 'hour')).toMatchObject({ audit_log: 1 })
  })

  test('goes on after a table that refuses the removal, and logs its name', async () => {
    const exportId = await newExport(91)
    const entryId = await insert('audit_log', daysAgo(401), oldEntry)
    await refuseRemoval(app, 'exports')
    const lines: { table?: string; msg: string }[] = []
    const logTo = { write: (line: string) => void lines.push(JSON.parse(line)) }
    {
      const { database } = app
      await using _worker = await startApp({ database, role: 'all', logLevel: 'warn', logTo })
      await until('the entry is removed', async () => !(await idsOf('audit_log')).includes(entryId))
    }
    expect(await idsOf('exports')).toContain(exportId)
    expect(lines).toContainEqual(
      expect.objectContaining({
        table: 'exports',
        msg: 'Outdated rows could not be removed; trying again in an hour',
      }),
    )
  })
})

async function refuseRemoval({ db }: TestApp, table: string): Promise<void> {
  if (db.dialect === 'sqlite')
    return db.write.raw(
      `create trigger refusal before delete on ${table} begin select raise(abort, 'refused'); end`,
    )
  await db.write.raw(
    `create function refuse() returns trigger as $$ begin raise 'refused'; end $$ language plpgsql`,
  )
  await db.write.raw(
    `create trigger refusal before delete on ${table} for each row execute function refuse()`,
  )
}
