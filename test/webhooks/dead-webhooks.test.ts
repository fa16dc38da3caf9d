/** The service disables a dead webhook: all of its attempts have failed for 5 days. */
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { resumeAccount, suspendAccount } from '../../records/account-suspension.ts'
import { countAttempts } from '../../records/attempt-counts.ts'
import { transaction } from '../../records/database/transaction.ts'
import { DeletionTime } from '../../records/deletion-time.ts'
import { pauseDeliveries, unpauseDeliveries } from '../../records/delivery-pause.ts'
import {
  disableWebhook,
  enableWebhook,
  findWebhook,
  updateWebhook,
} from '../../records/webhooks.ts'
import { disableDeadWebhooks } from '../../server/dead-webhooks.ts'
import { newTenant, sharedInstallation, type Tenant } from './harness.ts'

const HOUR_MS = 3_600_000
const NOW = Date.now()
const at = (hoursAgo: number): Date => new Date(NOW - hoursAgo * HOUR_MS)

const installation = sharedInstallation()

interface Webhook {
  tenant: Tenant
  id: string
  /** Counts an attempt with this outcome at each of these times. */
  count(outcome: 'success' | 'http_error', ...hoursAgo: number[]): Promise<void>
}

async function newWebhook(): Promise<Webhook> {
  const tenant = await newTenant(installation)
  const id = await tenant.subscribe('https://example.com/')
  return {
    tenant,
    id,
    async count(outcome, ...hoursAgo) {
      const status = outcome === 'success' ? 204 : 500
      const attempt = { accountId: tenant.accountId, webhookId: id, durationMs: 5, outcome, status }
      await transaction(installation.db, async (trx) => {
        for (const ago of hoursAgo)
          await countAttempts(trx, [{ ...attempt, endedAt: at(ago).getTime() }])
      })
    },
  }
}

/** Runs the check of the service. Resolves to whether the webhook is enabled after it. */
async function isEnabledAfterCheck({ tenant, id }: Webhook): Promise<boolean | undefined> {
  await disableDeadWebhooks(
    { db: installation.db, log: pino({ level: 'silent' }), afterDays: 5 },
    new DeletionTime(new Date(NOW)),
    new AbortController().signal,
  )
  return (await findWebhook(tenant.scope, id))?.enabled
}

/** Failed attempts, in hours ago. They cover 121 hours, a little more than 5 days. */
const FIVE_DAYS = [122, 100, 78, 56, 34, 12, 1]

/** Situations in which the webhook stays enabled. */
const STAYS_ENABLED: Record<string, (webhook: Webhook) => Promise<void>> = {
  'the failed attempts cover less than 5 days': ({ count }) =>
    count('http_error', ...FIVE_DAYS.slice(1)),
  async 'an attempt in between succeeded'({ count }) {
    await count('http_error', 122, 100, 78)
    await count('success', 60)
    await count('http_error', 56, 34, 12, 1)
  },
  async 'the last attempt succeeded'({ count }) {
    await count('http_error', ...FIVE_DAYS)
    await count('success', 0.5)
  },
  'there was no attempt in the last 24 hours': ({ count }) =>
    count('http_error', ...FIVE_DAYS.map((ago) => ago + 24)),
  'the clock jumped, or the service was stopped, between two attempts': ({ count }) =>
    count('http_error', 2_002, 2_001, 2, 1),
  async 'three workers have counted the same two days'({ count }) {
    for (const ago of [49, 25, 1]) await count('http_error', ago, ago, ago)
  },
  async 'its URL was changed'({ tenant, id, count }) {
    await count('http_error', ...FIVE_DAYS)
    const change = { url: 'https://example.com/new' }
    await tenant.write((scope) => updateWebhook(scope, id, change, new Date()))
    await count('http_error', 0.5)
  },
  async 'a user disabled and enabled it'({ tenant, id, count }) {
    await count('http_error', ...FIVE_DAYS)
    await tenant.write((scope) => disableWebhook(scope, id, new Date()))
    await tenant.write((scope) => enableWebhook(scope, id, new Date()))
    await count('http_error', 0.5)
  },
  async 'deliveries were paused for a while'({ count }) {
    await count('http_error', 122, 100)
    await pauseDeliveries(installation.db, at(99))
    await unpauseDeliveries(installation.db, at(90))
    await count('http_error', 78, 56, 34, 12, 1)
  },
  async 'the account was suspended for a while'({ tenant, count }) {
    await count('http_error', 122, 100)
    await tenant.write((scope) => suspendAccount(scope, at(99)))
    await tenant.write((scope) => resumeAccount(scope, at(90)))
    await count('http_error', 78, 56, 34, 12, 1)
  },
  async 'the account is suspended'({ tenant, count }) {
    await count('http_error', ...FIVE_DAYS)
    await tenant.write((scope) => suspendAccount(scope, at(0)))
  },
}

it('disables a webhook when all attempts of 5 days have failed', async () => {
  const webhook = await newWebhook()
  await webhook.count('http_error', ...FIVE_DAYS)
  expect(await isEnabledAfterCheck(webhook)).toBe(false)
})

it('counts earlier failures after a user enabled an enabled webhook', async () => {
  const webhook = await newWebhook()
  await webhook.count('http_error', ...FIVE_DAYS)
  await webhook.tenant.write((scope) => enableWebhook(scope, webhook.id, new Date()))
  expect(await isEnabledAfterCheck(webhook)).toBe(false)
})

it('disables no webhook while deliveries are paused', async () => {
  const webhook = await newWebhook()
  await webhook.count('http_error', ...FIVE_DAYS)
  await pauseDeliveries(installation.db, at(0))
  expect(await isEnabledAfterCheck(webhook)).toBe(true)
  await unpauseDeliveries(installation.db, at(0))
  expect(await isEnabledAfterCheck(webhook)).toBe(false)
})

describe('does not disable a webhook when', () => {
  it.each(Object.entries(STAYS_ENABLED))('%s', async (_, prepare) => {
    const webhook = await newWebhook()
    await prepare(webhook)
    expect(await isEnabledAfterCheck(webhook)).toBe(true)
  })
})
