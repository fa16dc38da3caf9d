import { describe, expect, it } from 'vitest'
import {
  freeQuota,
  type QueueUse,
  queueQuota,
  selectWithinQuota,
} from '../../webhooks/policy/fairness.ts'

const NOW_MS = 100_000

/** With one worker, the queue holds 2,688 due attempts. One account gets at most seven eighths. */
describe('queue quota', () => {
  const useOf = (accounts: QueueUse['accounts'], workers = 1): QueueUse => ({ accounts, workers })
  const accounts = (count: number, webhooks: number): QueueUse['accounts'] =>
    new Map(
      Array.from({ length: count }, (_, account) => [
        `account-${account}`,
        new Map(Array.from({ length: webhooks }, (_, webhook) => [`${account}-${webhook}`, 1])),
      ]),
    )
  it.each([
    { accountsInQueue: 0, webhooks: 0, quota: 2_352, ofNew: 2_352 },
    { accountsInQueue: 1, webhooks: 1, quota: 2_352, ofNew: 1_344 },
    { accountsInQueue: 1, webhooks: 50, quota: 47, ofNew: 1_344 },
    { accountsInQueue: 2, webhooks: 1, quota: 1_344, ofNew: 896 },
    { accountsInQueue: 2, webhooks: 50, quota: 26, ofNew: 896 },
    { accountsInQueue: 10, webhooks: 50, quota: 5, ofNew: 244 },
    { accountsInQueue: 5_000, webhooks: 1, quota: 16, ofNew: 16 },
  ])(
    '$accountsInQueue accounts with $webhooks webhooks each in the queue: $quota attempts of each, $ofNew of a new one',
    ({ accountsInQueue, webhooks, quota, ofNew }) => {
      const use = useOf(accounts(accountsInQueue, webhooks))
      expect(queueQuota(use, 'account-0')).toBe(quota)
      expect(queueQuota(use, 'new')).toBe(ofNew)
    },
  )

  it.each([
    { workers: 0, quota: 2_352 },
    { workers: 1, quota: 2_352 },
    { workers: 2, quota: 3_472 },
    { workers: 8, quota: 10_192 },
  ])('$workers workers: $quota attempts of the only webhook', ({ workers, quota }) => {
    expect(queueQuota(useOf(new Map(), workers), 'new')).toBe(quota)
  })

  it('freeQuota: 0 for a webhook at its quota, and less for a webhook above it', () => {
    const use = new Map([
      [
        'one',
        new Map([
          ['below', 671],
          ['at', 672],
        ]),
      ],
      ['other', new Map([['above', 1_376]])],
    ])
    expect(freeQuota(useOf(use))).toEqual(
      new Map([
        ['below', 1],
        ['at', 0],
        ['above', -32],
      ]),
    )
  })

  const due = (accountId: string, number: number, scheduledAt = NOW_MS) => ({
    accountId,
    webhookId: `${accountId}-1`,
    number,
    scheduledAt,
  })
  const later = (accountId: string, number: number) => due(accountId, number, NOW_MS + 1)
  /** Three accounts in the queue have a quota of 896 attempts each. */
  const withFree = (free: number, accountId: string): [string, Map<string, number>] => [
    accountId,
    new Map([[`${accountId}-1`, 896 - free]]),
  ]
  it.each([
    {
      situation: 'all fit',
      attempts: [due('a', 1), due('b', 2)],
      selected: [1, 2],
      urgent: [2],
    },
    {
      situation: 'an account becomes full on the way',
      attempts: [due('a', 1), due('a', 2), due('b', 3), due('a', 4)],
      selected: [1, 2, 3],
      urgent: [3],
    },
    {
      situation: 'attempts that are not due take no quota',
      attempts: [later('a', 1), later('a', 2), due('a', 3), due('c', 4), later('c', 5)],
      selected: [1, 2, 3, 5],
      urgent: [],
    },
  ])('selects within the quota: $situation', ({ attempts, selected, urgent }) => {
    const use = new Map([withFree(2, 'a'), withFree(0, 'c'), withFree(0, 'd')])
    const found = selectWithinQuota(attempts, useOf(use), NOW_MS)
    expect(found.attempts.map(({ number }) => number)).toEqual(selected)
    expect([...found.urgent].map(({ number }) => number)).toEqual(urgent)
  })

  it('the first 64 attempts of an account are urgent, over all its webhooks', () => {
    const attempts = Array.from({ length: 40 }, (_, number) => due('a', number))
    const use = new Map([
      [
        'a',
        new Map([
          ['a-1', 20],
          ['a-2', 30],
        ]),
      ],
    ])
    const { urgent } = selectWithinQuota(attempts, useOf(use), NOW_MS)
    expect([...urgent].map(({ number }) => number)).toEqual(Array.from({ length: 14 }, (_, n) => n))
  })
})
