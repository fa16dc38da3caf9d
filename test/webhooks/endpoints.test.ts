/** What a process remembers of endpoints. */
import { describe, expect, it } from 'vitest'
import type { SlowWebhook } from '../../records/slow-webhooks.ts'
import { Endpoints } from '../../webhooks/engine/endpoints.ts'
import { SLOW_AFTER } from '../../webhooks/policy/fairness.ts'

const accountId = 'account'
const host = 'example.com:443'

const slowWebhook = (webhookId: string, hasSucceeded: boolean): SlowWebhook => ({
  webhookId,
  accountId,
  host,
  hasSucceeded,
})

describe('slow before the start', () => {
  const [successful, hanging] = [slowWebhook('successful', true), slowWebhook('hanging', false)]
  it.each([
    { webhooks: [successful, hanging], hangs: false },
    { webhooks: [hanging, successful], hangs: false },
    { webhooks: [hanging, slowWebhook('other', false)], hangs: true },
  ])(
    'a new webhook of the host of $webhooks.0.webhookId and $webhooks.1.webhookId hangs: $hangs',
    (given) => {
      const endpoints = new Endpoints()
      endpoints.rememberSlow(given.webhooks)
      const attempt = { accountId, webhookId: 'new' }
      endpoints.takeSlot(attempt)
      endpoints.assumeHealthOfHost(attempt, host)
      expect(endpoints.health.get('new')).toMatchObject({
        slowInARow: SLOW_AFTER,
        slowFailuresInARow: given.hangs ? SLOW_AFTER : 0,
      })
    },
  )
})
