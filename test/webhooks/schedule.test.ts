import { describe, expect, test } from 'vitest'
import type { AttemptWith, SendResult, Trigger } from '../../records/attempt.ts'
import type { DeliveryProgress, LockedDelivery } from '../../records/attempt-results.ts'
import { readConfig } from '../../server/config.ts'
import { progressAfter } from '../../webhooks/policy/schedule.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const SCHEDULED_AT = 1_000_000
const ENDED_AT = SCHEDULED_AT + 250
const { webhookRetryDelaysMs: delaysMs } = readConfig({
  DATABASE_URL: 'postgres://localhost/x',
  SECRET_KEY: 'x'.repeat(32),
})

type Delivery = Omit<LockedDelivery, 'id' | 'accountId' | 'attempts'>
const webhook = { enabled: true, deleted: false }
const pending: Delivery = {
  state: 'pending',
  failureReason: null,
  nextAttemptAt: SCHEDULED_AT,
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

type EndedAttempt = Pick<AttemptWith<'result'>, 'number' | 'scheduledAt' | 'result'>
const sent = (
  changes: Partial<SendResult>,
  number = 1,
  trigger: Trigger = 'schedule',
): EndedAttempt => ({
  number,
  scheduledAt: SCHEDULED_AT,
  result: {
    trigger,
    orderingKey: null,
    isTest: false,
    endedAt: ENDED_AT,
    sent: {
      outcome: 'http_error',
      status: 500,
      startedAt: SCHEDULED_AT,
      durationMs: 250,
      responseHeaders: null,
      responseBody: null,
      error: null,
      address: null,
      phases: null,
      ...changes,
    },
  },
})
const fails = (number = 1, trigger?: Trigger) => sent({}, number, trigger)
const succeeds = (number = 1, trigger?: Trigger) =>
  sent({ outcome: 'success', status: 200 }, number, trigger)
const skipped: EndedAttempt = {
  number: 1,
  scheduledAt: SCHEDULED_AT,
  result: {
    trigger: 'schedule',
    orderingKey: null,
    isTest: false,
    endedAt: ENDED_AT,
    skipped: 'webhook_disabled',
  },
}
const ended = (
  state: DeliveryProgress['state'],
  failureReason: DeliveryProgress['failureReason'] = null,
): DeliveryProgress => ({
  state,
  failureReason,
  nextAttemptAt: null,
  nextTrigger: null,
})

describe('progressAfter: service-spec §8, each delay counts from the end of the previous attempt', () => {
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
  ])('attempt $number fails: the next attempt after $want ms', ({ number, want }) => {
    expect(progressAfter(number === 1 ? pending : retrying, fails(number), delaysMs)).toEqual({
      state: 'retrying',
      failureReason: null,
      nextAttemptAt: ENDED_AT + want,
      nextTrigger: 'schedule',
    })
  })

  test('attempt 10 fails: the delivery has failed', () => {
    expect(progressAfter(retrying, fails(10), delaysMs)).toEqual(
      ended('failed', 'attempts_exhausted'),
    )
  })
})

describe('progressAfter: the state of the delivery', () => {
  const disabled = { enabled: false, deleted: false }
  const deleted = { enabled: false, deleted: true }
  const endedMeanwhile: Delivery = {
    state: 'failed',
    failureReason: 'webhook_disabled',
    nextAttemptAt: null,
    nextTrigger: null,
    webhook: disabled,
  }
  const rescheduled: Delivery = { ...failed, nextAttemptAt: SCHEDULED_AT + 99 }
  const unchanged = {
    state: 'failed',
    failureReason: 'attempts_exhausted',
    nextAttemptAt: SCHEDULED_AT + 99,
    nextTrigger: 'retry',
  }
  test.each<{ name: string; delivery: Delivery; attempt: EndedAttempt; want: unknown }>([
    {
      name: 'first attempt succeeds',
      delivery: pending,
      attempt: succeeds(),
      want: ended('delivered'),
    },
    {
      name: 'later attempt succeeds',
      delivery: retrying,
      attempt: succeeds(7),
      want: ended('delivered'),
    },
    {
      name: 'manual retry succeeds',
      delivery: failed,
      attempt: succeeds(11, 'retry'),
      want: ended('delivered'),
    },
    {
      name: 'manual retry fails, outside the schedule',
      delivery: failed,
      attempt: fails(3, 'retry'),
      want: ended('failed', 'attempt_failed'),
    },
    {
      name: 'resend succeeds',
      delivery: delivered,
      attempt: succeeds(2, 'resend'),
      want: ended('delivered'),
    },
    {
      name: 'resend fails',
      delivery: delivered,
      attempt: fails(2, 'resend'),
      want: ended('delivered'),
    },
    {
      name: 'test fails',
      delivery: pending,
      attempt: fails(1, 'test'),
      want: ended('failed', 'attempt_failed'),
    },
    {
      name: 'fails, webhook disabled meanwhile',
      delivery: { ...pending, webhook: disabled },
      attempt: fails(),
      want: ended('failed', 'webhook_disabled'),
    },
    {
      name: 'fails, webhook deleted meanwhile',
      delivery: { ...pending, webhook: deleted },
      attempt: fails(),
      want: ended('failed', 'webhook_deleted'),
    },
    {
      name: 'fails after the delivery was ended',
      delivery: endedMeanwhile,
      attempt: fails(),
      want: ended('failed', 'webhook_disabled'),
    },
    {
      name: 'succeeds after the delivery was ended',
      delivery: endedMeanwhile,
      attempt: succeeds(),
      want: ended('delivered'),
    },
    {
      name: 'fails after another attempt was scheduled',
      delivery: rescheduled,
      attempt: fails(),
      want: unchanged,
    },
  ])('$name', ({ delivery, attempt, want }) => {
    expect(progressAfter(delivery, attempt, delaysMs)).toEqual(want)
  })
})

describe('progressAfter: the attempt was skipped because the webhook is disabled', () => {
  test.each<{ name: string; delivery: Delivery; want: unknown }>([
    { name: 'pending', delivery: pending, want: ended('failed', 'webhook_disabled') },
    { name: 'retrying', delivery: retrying, want: ended('failed', 'webhook_disabled') },
    { name: 'delivered, to be resent', delivery: delivered, want: ended('delivered') },
  ])('$name', ({ delivery, want }) => {
    expect(progressAfter(delivery, skipped, delaysMs)).toEqual(want)
  })
})
