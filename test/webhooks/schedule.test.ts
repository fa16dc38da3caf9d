import { describe, expect, test } from 'vitest'
import type { DeliveryPlan, SettlingDelivery } from '../../records/settlements.ts'
import { readConfig } from '../../server/config.ts'
import { afterAttempt, type EndedAttempt, withoutAttempt } from '../../webhooks/policy/schedule.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DUE = 1_000_000
const END = DUE + 250
const { webhookRetryDelaysMs: delaysMs } = readConfig({
  DATABASE_URL: 'postgres://localhost/x',
  SECRET_KEY: 'x'.repeat(32),
})

type Delivery = Pick<
  SettlingDelivery,
  'state' | 'failureReason' | 'nextAttemptAt' | 'nextTrigger' | 'webhook'
>
const webhook = { enabled: true, deleted: false }
const pending: Delivery = {
  state: 'pending',
  failureReason: null,
  nextAttemptAt: DUE,
  nextTrigger: 'schedule',
  webhook,
}
const retrying: Delivery = { ...pending, state: 'retrying' }
const failed: Delivery = {
  ...pending,
  state: 'failed',
  failureReason: 'attempts_exhausted',
  nextTrigger: 'retry',
}
const delivered: Delivery = { ...pending, state: 'delivered', nextTrigger: 'resend' }

const failure: EndedAttempt = {
  number: 1,
  trigger: 'schedule',
  dueAt: DUE,
  succeeded: false,
  endedAt: END,
  retryAfterAt: null,
}
const success: EndedAttempt = { ...failure, succeeded: true }
const ended = (
  state: DeliveryPlan['state'],
  failureReason: DeliveryPlan['failureReason'] = null,
): DeliveryPlan => ({
  state,
  failureReason,
  nextAttemptAt: null,
  nextTrigger: null,
})

describe('afterAttempt: service-spec §8, each delay from the end of the attempt before', () => {
  test.each([
    { number: 1, want: 5 * SECOND },
    { number: 2, want: 5 * SECOND },
    { number: 3, want: MINUTE },
    { number: 4, want: 5 * MINUTE },
    { number: 5, want: 30 * MINUTE },
    { number: 6, want: 2 * HOUR },
    { number: 7, want: 5 * HOUR },
    { number: 8, want: 10 * HOUR },
    { number: 9, want: 24 * HOUR },
  ])('attempt $number fails: the next after $want ms', ({ number, want }) => {
    expect(
      afterAttempt(number === 1 ? pending : retrying, { ...failure, number }, delaysMs),
    ).toEqual({
      state: 'retrying',
      failureReason: null,
      nextAttemptAt: END + want,
      nextTrigger: 'schedule',
    })
  })

  test.each([
    { name: 'later than the schedule: then', retryAfterAt: END + MINUTE, want: MINUTE },
    { name: 'earlier than the schedule: no sooner', retryAfterAt: END + SECOND, want: 5 * SECOND },
    { name: 'in the past: no sooner', retryAfterAt: END - HOUR, want: 5 * SECOND },
    { name: 'in a year: in 24 hours', retryAfterAt: END + 365 * 24 * HOUR, want: 24 * HOUR },
  ])('the endpoint asks to be tried again $name', ({ retryAfterAt, want }) => {
    expect(afterAttempt(pending, { ...failure, retryAfterAt }, delaysMs)).toMatchObject({
      state: 'retrying',
      nextAttemptAt: END + want,
    })
  })

  test('attempt 10 fails: the delivery has failed', () => {
    expect(
      afterAttempt(retrying, { ...failure, number: 10, retryAfterAt: END + HOUR }, delaysMs),
    ).toEqual(ended('failed', 'attempts_exhausted'))
  })
})

describe('afterAttempt: what becomes of a delivery', () => {
  const disabled = { enabled: false, deleted: false }
  const deleted = { enabled: false, deleted: true }
  const cutOff: Delivery = {
    state: 'failed',
    failureReason: 'webhook_disabled',
    nextAttemptAt: null,
    nextTrigger: null,
    webhook: disabled,
  }
  const planedAnew: Delivery = { ...failed, nextAttemptAt: DUE + 99 }
  const kept = {
    state: 'failed',
    failureReason: 'attempts_exhausted',
    nextAttemptAt: DUE + 99,
    nextTrigger: 'retry',
  }
  test.each<{ name: string; delivery: Delivery; attempt: EndedAttempt; want: unknown }>([
    {
      name: 'first attempt succeeds',
      delivery: pending,
      attempt: success,
      want: ended('delivered'),
    },
    {
      name: 'later attempt succeeds',
      delivery: retrying,
      attempt: { ...success, number: 7 },
      want: ended('delivered'),
    },
    {
      name: 'manual retry succeeds',
      delivery: failed,
      attempt: { ...success, number: 11, trigger: 'retry' },
      want: ended('delivered'),
    },
    {
      name: 'manual retry fails, outside the schedule',
      delivery: failed,
      attempt: { ...failure, number: 3, trigger: 'retry' },
      want: ended('failed', 'attempt_failed'),
    },
    {
      name: 'resend succeeds',
      delivery: delivered,
      attempt: { ...success, number: 2, trigger: 'resend' },
      want: ended('delivered'),
    },
    {
      name: 'resend fails',
      delivery: delivered,
      attempt: { ...failure, number: 2, trigger: 'resend' },
      want: ended('delivered'),
    },
    {
      name: 'test fails',
      delivery: pending,
      attempt: { ...failure, trigger: 'test' },
      want: ended('failed', 'attempt_failed'),
    },
    {
      name: 'fails, webhook disabled meanwhile',
      delivery: { ...pending, webhook: disabled },
      attempt: failure,
      want: ended('failed', 'webhook_disabled'),
    },
    {
      name: 'fails, webhook deleted meanwhile',
      delivery: { ...pending, webhook: deleted },
      attempt: failure,
      want: ended('failed', 'webhook_deleted'),
    },
    {
      name: 'fails after the delivery was ended',
      delivery: cutOff,
      attempt: failure,
      want: ended('failed', 'webhook_disabled'),
    },
    {
      name: 'succeeds after the delivery was ended',
      delivery: cutOff,
      attempt: success,
      want: ended('delivered'),
    },
    {
      name: 'fails after another attempt was planned',
      delivery: planedAnew,
      attempt: failure,
      want: kept,
    },
  ])('$name', ({ delivery, attempt, want }) => {
    expect(afterAttempt(delivery, attempt, delaysMs)).toEqual(want)
  })
})

describe('withoutAttempt: the webhook is gone before the attempt', () => {
  test.each<{ name: string; delivery: Delivery; want: unknown }>([
    { name: 'pending', delivery: pending, want: ended('failed', 'webhook_disabled') },
    { name: 'retrying', delivery: retrying, want: ended('failed', 'webhook_disabled') },
    { name: 'delivered, to be resent', delivery: delivered, want: ended('delivered') },
  ])('$name', ({ delivery, want }) => {
    expect(withoutAttempt(delivery, DUE, 'webhook_disabled')).toEqual(want)
  })
})
