/** The operational events `muster.*`: about webhooks, bulk jobs, imports and quotas. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { suspendAccount } from '../../records/account-suspension.ts'
import { type CountedAttempt, countAttempts } from '../../records/attempt-counts.ts'
import { transaction } from '../../records/database/transaction.ts'
import { type Quotas, quotaNames, setQuota } from '../../records/quotas.ts'
import { disableWebhook, enableWebhook } from '../../records/webhooks.ts'
import { notify, notifyOfQuotas, notifyOfWebhooks, sendDigests } from '../../webhooks/notices.ts'
import { addSlackChannel } from '../../webhooks/webhook-changes.ts'
import { importFile } from '../handlers/import-helpers.ts'
import { sharedApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { NEVER, newTenant, type Tenant } from './harness.ts'

const HOUR_MS = 3_600_000
const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })
const never = new AbortController().signal

const STATES = ['failing', 'degraded', 'disabled', 'recovered']
const WEBHOOK_EVENTS = STATES.map((state) => `muster.webhook_${state}`)

/** A tenant with a webhook, and another one that is told about it. Its deliveries are only stored: Muster
 *  sends nothing to its IP address. */
async function newWatched(eventTypes = WEBHOOK_EVENTS) {
  const tenant = await newTenant(app)
  const watcher = await tenant.subscribe('https://192.0.2.1/', { eventTypes })
  const id = await tenant.subscribe('https://example.com/', { description: 'Orders' })
  let now = Date.now()
  return {
    tenant,
    id,
    watcher,
    async count(outcome: 'success' | 'http_error', attempts = 1) {
      const status = outcome === 'success' ? 204 : 500
      const attempt = { webhookId: id, accountId: tenant.accountId, endedAt: now - 1 }
      const counted: CountedAttempt = { ...attempt, durationMs: 5, outcome, status }
      await transaction(app.db, (trx) => countAttempts(trx, Array(attempts).fill(counted)))
    },
    /** Runs the check `hours` later, and returns the texts of its notices. */
    async check(hours = 0.2): Promise<string[]> {
      now += hours * HOUR_MS
      const before = new Set((await tenant.deliveries()).map((delivery) => delivery.id))
      await notifyOfWebhooks(app.db, new Date(now), never)
      return (await textsOf(tenant)).filter(({ id: each }) => !before.has(each)).map(toLine)
    },
  }
}

const toLine = ({ type, text }: { type: string; text: string }): string => `${type}: ${text}`

/** The notices of the account, oldest first. */
async function textsOf({ scope }: Tenant): Promise<{ id: string; type: string; text: string }[]> {
  const rows: { id: string; event_type: string; body: Buffer }[] = await scope
    .rows('deliveries')
    .whereLike('event_type', 'muster.%')
    .orderBy('id')
  return rows.map(({ id, event_type: type, body }) => {
    const payload = JSON.parse(String(body))
    expect(payload).toMatchObject({ id, event_type: type })
    return { id, type: type.replace('muster.', ''), text: payload.data.text }
  })
}

describe('the health of a webhook', () => {
  test('each change is told once: failing, degraded, recovered, disabled', async () => {
    const { tenant, id, count, check } = await newWatched()
    await count('success', 20)
    expect(await check()).toEqual([])
    await count('http_error', 3)
    expect(await check()).toEqual([
      'webhook_failing: The webhook “Orders” is failing: 3 attempts in a row failed.',
    ])
    expect(await check()).toEqual([])
    await count('success')
    await count('http_error', 2)
    await count('success')
    expect(await check()).toEqual([
      'webhook_degraded: The webhook “Orders” is degraded: 5 of 27 attempts failed in the last hour.',
    ])
    expect(await check()).toEqual([])
    expect(await check(1)).toEqual(['webhook_recovered: The webhook “Orders” has recovered.'])
    await tenant.write((scope) => disableWebhook(scope, id, new Date()))
    expect(await check()).toEqual([
      'webhook_disabled: The webhook “Orders” was disabled by a user.',
    ])
    await tenant.write((scope) => enableWebhook(scope, id, new Date()))
    await count('success')
    expect(await check()).toEqual(['webhook_recovered: The webhook “Orders” has recovered.'])
  })

  test('a webhook that changes all the time is told every 10 minutes at most', async () => {
    const { count, check } = await newWatched()
    await count('http_error', 3)
    expect(await check()).toHaveLength(1)
    await count('success')
    expect(await check(0.1)).toEqual([])
    await count('http_error', 3)
    expect(await check(0.1)).toEqual([])
    await count('success')
    expect(await check(0.1)).toHaveLength(1)
  })

  test('several nodes that check at once tell it once', async () => {
    const { tenant, count } = await newWatched()
    await count('http_error', 3)
    const now = new Date()
    await Promise.all(Array.from({ length: 4 }, () => notifyOfWebhooks(app.db, now, never)))
    expect(await textsOf(tenant)).toHaveLength(1)
  })

  test('a webhook that was disabled before somebody subscribed is not told', async () => {
    const { tenant, id, check } = await newWatched()
    await tenant.write((scope) => disableWebhook(scope, id, new Date()))
    expect(await check()).toEqual([])
  })

  test('no webhook is told about itself, and no suspended account about anything', async () => {
    const own = await newWatched()
    const about = { type: 'muster.webhook_failing', resourceId: own.watcher, text: 'T' } as const
    await own.tenant.write((scope) => notify(scope, about, new Date()))
    expect(await textsOf(own.tenant)).toEqual([])
    await own.count('http_error', 3)
    await own.tenant.write((scope) => suspendAccount(scope, new Date()))
    expect(await own.check()).toEqual([])
  })

  test('a subscription to * gets none, and the notices of another account neither', async () => {
    const { tenant, count, check } = await newWatched(['*'])
    await newWatched()
    await count('http_error', 3)
    expect(await check()).toEqual([])
    expect(await textsOf(tenant)).toEqual([])
  })
})

test('a notice is signed and delivered, and it is no stored event', async () => {
  const account = await app.newAccount()
  const client = app.as(account)
  await using receiver = await startReceiver()
  const created = await client.post('/webhooks', {
    url: receiver.url,
    event_types: ['*', 'muster.bulk_job_ended', 'muster.import_ended'],
  })
  expect(created).toMatchObject({ status: 201 })
  const { id } = created.body
  const job = await client.post(`/webhooks/${id}/retry-failed`, {
    since: new Date(0).toISOString(),
  })
  expect(job).toMatchObject({ status: 201 })
  const request = await until('the end of the job is told', () => receiver.requests[0])
  expect(JSON.parse(String(request.body))).toEqual({
    id: expect.any(String),
    event_type: 'muster.bulk_job_ended',
    resource: { type: 'bulk_job', id: job.body.id },
    data: { text: expect.stringMatching(/^The retry of failed deliveries of “.*” has ended: /) },
  })
  expect(request.headers['x-service-signature']).toMatch(/^[0-9a-f]{64}$/)
  expect((await client.get('/events')).body.data).toEqual([])
  const { body } = await until('the attempt is stored', async () => {
    const list = await client.get('/deliveries?filter[state]=delivered')
    return list.body.data.length === 1 && list
  })
  expect(body.data).toMatchObject([{ event_type: 'muster.bulk_job_ended', event_id: null }])
})

test('the end of an import is told with its counts', async () => {
  const account = await app.newAccount()
  const client = app.as(account)
  await using receiver = await startReceiver()
  await client.post('/webhooks', { url: receiver.url, event_types: ['muster.import_ended'] })
  await importFile(app, client, 'mode=upsert', 'full_name,external_id\nAda,1\n,2\n')
  const request = await until('the end of the import is told', () => receiver.requests[0])
  expect(JSON.parse(String(request.body)).data.text).toBe(
    'The import of participants has ended: 1 created, 0 updated, 0 unchanged, 1 refused.',
  )
})

describe('quotas', () => {
  const defaults = Object.fromEntries(quotaNames.map((name) => [name, 1_000])) as Quotas
  const check = () => notifyOfQuotas(app.db, defaults, new Date(), never)

  test('80 % is told once, and again after the use was below 70 %', async () => {
    const { tenant } = await newWatched(['muster.quota_reached'])
    const limit = (value: number) => tenant.write((scope) => setQuota(scope, 'webhooks', value))
    await check()
    expect(await textsOf(tenant)).toEqual([])
    await tenant.subscribe('https://example.com/2')
    const told: string[] = []
    // There are 3 webhooks.
    for (const value of [4, 3, 4, 5, 3]) {
      await limit(value)
      await check()
      told.push((await textsOf(tenant)).map(({ text }) => text).join('|'))
    }
    const first = 'The account uses 100 % of a quota: 3 of 3 webhooks.'
    expect(told).toEqual(['', first, first, first, `${first}|${first}`])
  })
})

describe('a Slack channel', () => {
  const URL_PATH = 'services/T1/B1/a-secret'

  async function newChannel(tenant: Tenant, url: string): Promise<string> {
    const fields = { description: 'Slack', eventTypes: WEBHOOK_EVENTS, createdBy: null }
    const audit = async (): Promise<void> => undefined
    const channel = await tenant.write((scope) =>
      addSlackChannel({ scope, now: new Date(), audit }, app.config.secretKeys, { ...fields, url }),
    )
    return channel.id
  }

  const tell = (tenant: Tenant, ...texts: string[]) =>
    tenant.write(async (scope) => {
      const notice = { type: 'muster.webhook_failing', resourceId: randomUUID() } as const
      for (const text of texts) await notify(scope, { ...notice, text }, new Date())
    })
  const digest = (at: number) => sendDigests(app.db, 'https://muster.example', new Date(at), never)

  test('the first notice is sent at once, and further ones an hour later in one message', async () => {
    await using receiver = await startReceiver({ validate: false })
    const tenant = await newTenant(app)
    await newChannel(tenant, `${receiver.url}/${URL_PATH}`)
    const bodies = async (count: number): Promise<string[]> => {
      await until(`${count} messages`, () => receiver.requests.length === count)
      return receiver.requests.map(({ body }) => JSON.parse(String(body)).text)
    }
    const start = Date.now()
    await tell(tenant, 'A & <B>')
    await Promise.all([digest(start), digest(start), digest(start)])
    const link = /<https:\/\/muster\.example\/console\/webhooks\/[0-9a-f-]{36}\|Open>$/
    expect(await bodies(1)).toEqual([expect.stringMatching(/^A &amp; &lt;B&gt; /)])
    expect((await bodies(1))[0]).toMatch(link)
    expect(receiver.requests[0]?.path).toBe(`/webhooks/${URL_PATH}`)

    await tell(tenant, ...Array.from({ length: 25 }, (_, index) => `Notice ${index}.`))
    await digest(start + HOUR_MS - 1)
    expect(await tenant.scope.rows('held_notices')).toHaveLength(25)
    await digest(start + HOUR_MS)
    const lines = (await bodies(2))[1]?.split('\n')
    expect(lines).toHaveLength(21)
    expect(lines?.[0]).toMatch(/^Notice 0\. </)
    expect(lines?.[20]).toBe('… and 5 more.')
    expect(await tenant.scope.rows('held_notices')).toEqual([])
  })

  test('the notices of a disabled channel are dropped', async () => {
    const tenant = await newTenant(app)
    const id = await newChannel(tenant, 'https://192.0.2.1/')
    await tell(tenant, 'T')
    await tenant.write((scope) => disableWebhook(scope, id, new Date()))
    await digest(Date.now())
    expect(await tenant.scope.rows('held_notices')).toEqual([])
    expect(await tenant.deliveries()).toEqual([])
  })

  test('nobody can read or change its URL, and it gets operational events alone', async () => {
    await using receiver = await startReceiver({ validate: false })
    const account = await app.newAccount()
    const client = app.as(account)
    const tenant = await newTenant({ ...app, newAccount: async () => account })
    const id = await newChannel(tenant, `${receiver.url}/${URL_PATH}`)
    const { body } = await client.get(`/webhooks/${id}`)
    expect(body).toMatchObject({ format: 'slack', url: `${new URL(receiver.url).origin}/` })
    const stored = await tenant.scope.rows('webhooks').where({ id })
    expect(JSON.stringify(stored)).not.toContain('a-secret')
    const path = `/webhooks/${id}`
    for (const [field, value] of Object.entries({
      url: 'https://example.com/',
      event_types: ['*'],
    }))
      expect(await client.patch(path, { [field]: value })).toMatchObject({
        status: 422,
        body: { errors: { [field]: [expect.stringMatching(/^A Slack channel gets muster/)] } },
      })
    expect(await client.patch(path, { url: body.url, description: 'S' })).toMatchObject({
      status: 200,
    })
    expect(await client.post(`${path}/test`, undefined)).toMatchObject({ status: 201 })
    const request = await until('the test message', () => receiver.requests[0])
    expect(JSON.parse(String(request.body))).toEqual({ text: 'This is a test message of Muster.' })
    expect(request.path).toBe(`/webhooks/${URL_PATH}`)
  })
})
