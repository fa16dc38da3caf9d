/** Which webhooks the service disables, because no attempt has succeeded for 5 days. */
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { resumeAccount, suspendAccount } from '../../records/account-suspension.ts'
import { countAttempts } from '../../records/attempt-counts.ts'
import { DeletionTime } from '../../records/clock-spans.ts'
import { transaction } from '../../records/database/transaction.ts'
import { pauseDeliveries, unpauseDeliveries } from '../../records/delivery-pause.ts'
import {
  disableWebhook,
  enableWebhook,
  findWebhook,
  updateWebhook,
} from '../../records/webhooks.ts'
import { disableDeadWebhooks } from '../../server/dead-webhooks.ts'
import { type Bench, newBench, newTenant, type Tenant } from './harness.ts'

const HOUR_MS = 3_600_000
const NOW = Date.now()
const at = (hoursAgo: number): Date => new Date(NOW - hoursAgo * HOUR_MS)

let bench: Bench
beforeAll(async () => {
  bench = await newBench()
})
afterAll(() => bench?.[Symbol.asyncDispose]())

interface Webhook {
  tenant: Tenant
  id: string
  count(outcome: 'success' | 'http_error', ...hoursAgo: number[]): Promise<void>
}

async function newWebhook(): Promise<Webhook> {
  const tenant = await newTenant(bench)
  const id = await tenant.subscribe('https://example.com/')
  return {
    tenant,
    id,
    async count(outcome, ...hoursAgo) {
      const status = outcome === 'success' ? 204 : 500
      await transaction(bench.db, async (trx) => {
        for (const ago of hoursAgo)
          await countAttempts(trx, [
            { webhookId: id, endedAt: at(ago).getTime(), durationMs: 5, outcome, status },
          ])
      })
    },
  }
}

/** Whether the service disables the webhook. */
async function isDisabled({ tenant, id }: Webhook): Promise<boolean> {
  await disableDeadWebhooks(
    { db: bench.db, log: pino({ level: 'silent' }), afterDays: 5 },
    new DeletionTime(new Date(NOW)),
    new AbortController().signal,
  )
  return (await findWebhook(tenant.scope, id))?.enabled === false
}

/** Failed attempts over 121 hours. */
const FIVE_DAYS = [122, 100, 78, 56, 34, 12, 1]

const CASES: Record<string, { prepare(webhook: Webhook): Promise<void>; disabled: boolean }> = {
  'all attempts of 5 days have failed': {
    prepare: ({ count }) => count('http_error', ...FIVE_DAYS),
    disabled: true,
  },
  'the attempts of less than 5 days': {
    prepare: ({ count }) => count('http_error', ...FIVE_DAYS.slice(1)),
    disabled: false,
  },
  'a success in between': {
    async prepare({ count }) {
      await count('http_error', 122, 100, 78)
      await count('success', 60)
      await count('http_error', 56, 34, 12, 1)
    },
    disabled: false,
  },
  'a success at the end': {
    async prepare({ count }) {
      await count('http_error', ...FIVE_DAYS)
      await count('success', 0.5)
    },
    disabled: false,
  },
  'no attempt in the last 24 hours': {
    prepare: ({ count }) => count('http_error', ...FIVE_DAYS.map((ago) => ago + 24)),
    disabled: false,
  },
  'the clock jumped, or the service was stopped, between two attempts': {
    prepare: ({ count }) => count('http_error', 2_002, 2_001, 2, 1),
    disabled: false,
  },
  'three workers have counted the same time': {
    async prepare({ count }) {
      for (const ago of [49, 25, 1]) await count('http_error', ago, ago, ago)
    },
    disabled: false,
  },
  'another URL': {
    async prepare({ tenant, id, count }) {
      await count('http_error', ...FIVE_DAYS)
      await tenant.write((own) =>
        updateWebhook(own, id, { url: 'https://example.com/new' }, new Date()),
      )
      await count('http_error', 0.5)
    },
    disabled: false,
  },
  'disabled and enabled by a user': {
    async prepare({ tenant, id, count }) {
      await count('http_error', ...FIVE_DAYS)
      await tenant.write((own) => disableWebhook(own, id, new Date()))
      await tenant.write((own) => enableWebhook(own, id, new Date()))
      await count('http_error', 0.5)
    },
    disabled: false,
  },
  'deliveries were paused': {
    async prepare({ count }) {
      await count('http_error', 122, 100)
      await pauseDeliveries(bench.db, at(99))
      await unpauseDeliveries(bench.db, at(90))
      await count('http_error', 78, 56, 34, 12, 1)
    },
    disabled: false,
  },
  'the account was suspended': {
    async prepare({ tenant, count }) {
      await count('http_error', 122, 100)
      await tenant.write((own) => suspendAccount(own, at(99)))
      await tenant.write((own) => resumeAccount(own, at(90)))
      await count('http_error', 78, 56, 34, 12, 1)
    },
    disabled: false,
  },
  'the account is suspended': {
    async prepare({ tenant, count }) {
      await count('http_error', ...FIVE_DAYS)
      await tenant.write((own) => suspendAccount(own, at(0)))
    },
    disabled: false,
  },
}

it.each(Object.entries(CASES))('%s', async (_, { prepare, disabled }) => {
  const webhook = await newWebhook()
  await prepare(webhook)
  expect(await isDisabled(webhook)).toBe(disabled)
})
