/** What a process remembers of endpoints. */
import { describe, expect, it } from 'vitest'
import type { SlowWebhook } from '../../records/slow-webhooks.ts'
import { Endpoints } from '../../webhooks/engine/endpoints.ts'
import { SLOW_AFTER } from '../../webhooks/policy/fairness.ts'

const MINUTE_MS = 60_000
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
    ({ webhooks, hangs }) => {
      const endpoints = new Endpoints()
      endpoints.rememberSlow(webhooks)
      const attempt = { accountId, webhookId: 'new' }
      endpoints.takeSlot(attempt)
      endpoints.assumeHealthOfHost(attempt, host)
      expect(endpoints.health.get('new')).toMatchObject({
        slowInARow: SLOW_AFTER,
        slowFailuresInARow: hangs ? SLOW_AFTER : 0,
      })
    },
  )
})

it('forgets a slow webhook after 15 minutes without attempts, when its account has none in flight', () => {
  let nowMs = 0
  const endpoints = new Endpoints(() => nowMs)
  const makeAttempt = (webhookId: string, account = accountId) => {
    endpoints.takeSlot({ webhookId, accountId: account })
    endpoints.freeSlot({ webhookId, accountId: account })
  }
  const remembered = () => [...endpoints.health.keys()]
  endpoints.rememberSlow([slowWebhook('deleted', false), slowWebhook('used', false)])
  endpoints.takeSlot({ webhookId: 'busy', accountId: 'busy' })
  nowMs = 10 * MINUTE_MS
  makeAttempt('used')
  makeAttempt('quick', 'other')
  expect(remembered()).toEqual(['deleted', 'used', 'busy'])
  nowMs = 20 * MINUTE_MS
  makeAttempt('quick', 'other')
  expect(remembered()).toEqual(['used', 'busy'])
  endpoints.freeSlot({ webhookId: 'busy', accountId: 'busy' })
  expect(remembered()).toEqual(['used'])
})
