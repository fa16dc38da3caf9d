import { describe, expect, it } from 'vitest'
import {
  concurrencyLimit,
  type EndpointHealth,
  healthAfter,
  isAtLimit,
  type LeaseRound,
  normalRound,
  probeRound,
  queueQuota,
  quickRound,
  selectWithinQuota,
  webhooksAtQuota,
} from '../../webhooks/policy/fairness.ts'

const NOW_MS = 100_000

const endpoint = (changes: Partial<EndpointHealth> = {}): EndpointHealth => ({
  inFlight: 0,
  slowInARow: 0,
  quickAt: Number.NEGATIVE_INFINITY,
  ...changes,
})
const quick = (inFlight: number) => endpoint({ inFlight, quickAt: NOW_MS - 10 })
const slow = (inFlight: number) => endpoint({ inFlight, slowInARow: 16 })
const normal = (inFlight: number) => endpoint({ inFlight })

describe('queue quota', () => {
  it.each([
    { webhooks: 0, quota: 1_536 },
    { webhooks: 1, quota: 1_536 },
    { webhooks: 2, quota: 768 },
    { webhooks: 7, quota: 219 },
    { webhooks: 96, quota: 16 },
    { webhooks: 5_000, quota: 16 },
  ])('$webhooks webhooks in the queue: $quota attempts each', ({ webhooks, quota }) => {
    expect(queueQuota(webhooks)).toBe(quota)
  })

  it('is reached by the webhooks that have as many queued attempts, or more', () => {
    const queued = new Map([
      ['below', 15],
      ['at', 16],
      ['above', 40],
    ])
    expect(webhooksAtQuota(queued, 16)).toEqual(new Set(['at', 'above']))
  })

  const due = (webhookId: string, number: number) => ({ webhookId, number, scheduledAt: NOW_MS })
  const later = (webhookId: string, number: number) => ({
    webhookId,
    number,
    scheduledAt: NOW_MS + 1,
  })
  it.each([
    {
      situation: 'all fit',
      attempts: [due('a', 1), due('b', 2)],
      queued: { a: 1 },
      selected: [1, 2],
    },
    {
      situation: 'one webhook is full',
      attempts: [due('a', 1), due('b', 2), due('a', 3)],
      queued: { a: 3 },
      selected: [2],
    },
    {
      situation: 'a webhook gets full on the way',
      attempts: [due('a', 1), due('a', 2), due('b', 3), due('a', 4)],
      queued: { a: 1 },
      selected: [1, 2, 3],
    },
    {
      situation: 'attempts of the future count nothing',
      attempts: [later('a', 1), later('a', 2), due('a', 3), later('a', 4)],
      queued: { a: 2 },
      selected: [1, 2, 3, 4],
    },
  ])('selects within a quota of 3: $situation', ({ attempts, queued, selected }) => {
    const chosen = selectWithinQuota(attempts, new Map(Object.entries(queued)), 3, NOW_MS)
    expect(chosen.map(({ number }) => number)).toEqual(selected)
  })
})

describe('concurrency limit', () => {
  it.each([
    { situation: 'unknown endpoint', health: endpoint(), limit: 16 },
    {
      situation: 'quick response just now',
      health: endpoint({ quickAt: NOW_MS - 999 }),
      limit: 128,
    },
    {
      situation: 'quick response a second ago',
      health: endpoint({ quickAt: NOW_MS - 1_000 }),
      limit: 16,
    },
    { situation: '15 slow attempts in a row', health: endpoint({ slowInARow: 15 }), limit: 16 },
    { situation: '16 slow attempts in a row', health: endpoint({ slowInARow: 16 }), limit: 1 },
    {
      situation: '16 timeouts right after a quick response',
      health: endpoint({ slowInARow: 16, quickAt: NOW_MS }),
      limit: 1,
    },
  ])('$situation: $limit', ({ health, limit }) => {
    expect(concurrencyLimit(health, NOW_MS)).toBe(limit)
  })

  it.each([
    { endpoint: 'normal, 15 in flight', health: normal(15), atLimit: false },
    { endpoint: 'normal, 16 in flight', health: normal(16), atLimit: true },
    { endpoint: 'quick, 16 in flight', health: quick(16), atLimit: true },
    { endpoint: 'slow, 1 in flight', health: slow(1), atLimit: true },
  ])('is reached: $endpoint: $atLimit', ({ health, atLimit }) => {
    expect(isAtLimit(health, NOW_MS)).toBe(atLimit)
  })
})

describe('lease rounds', () => {
  interface Row {
    situation: string
    endpoints: Record<string, EndpointHealth>
    normal: LeaseRound
    quick: LeaseRound | undefined
    probe: LeaseRound | undefined
  }
  const rounds: Row[] = [
    {
      situation: 'no endpoint in flight',
      endpoints: {},
      normal: { limit: 16, skip: [] },
      quick: undefined,
      probe: undefined,
    },
    {
      situation: 'a slow endpoint without an attempt in flight',
      endpoints: { n: normal(3), s: slow(0) },
      normal: { limit: 16, skip: ['s'] },
      quick: undefined,
      probe: { limit: 1, skip: [] },
    },
    {
      situation: 'a slow endpoint that is being probed',
      endpoints: { s: slow(1) },
      normal: { limit: 16, skip: ['s'] },
      quick: undefined,
      probe: undefined,
    },
    {
      situation: 'a quick endpoint at the normal limit, beside others',
      endpoints: { q: quick(16), full: normal(16), free: normal(2), s: slow(1) },
      normal: { limit: 16, skip: ['s'] },
      quick: { limit: 128, skip: ['full', 's'] },
      probe: undefined,
    },
    {
      situation: 'a quick endpoint at its own limit',
      endpoints: { q: quick(128) },
      normal: { limit: 16, skip: [] },
      quick: undefined,
      probe: undefined,
    },
  ]
  it.each(rounds)('$situation', ({ endpoints, ...expected }) => {
    const map = new Map(Object.entries(endpoints))
    expect(normalRound(map, NOW_MS)).toEqual(expected.normal)
    expect(quickRound(map, NOW_MS)).toEqual(expected.quick)
    expect(probeRound(map, NOW_MS)).toEqual(expected.probe)
  })
})

describe('endpoint health after an attempt', () => {
  const before = endpoint({ inFlight: 5, slowInARow: 3, quickAt: 1 })
  it.each([
    { outcome: 'success', status: 200, durationMs: 250, slowInARow: 0, quickAt: NOW_MS },
    { outcome: 'success', status: 200, durationMs: 251, slowInARow: 0, quickAt: 1 },
    { outcome: 'success', status: 200, durationMs: 4_999, slowInARow: 0, quickAt: 1 },
    { outcome: 'success', status: 200, durationMs: 5_000, slowInARow: 4, quickAt: 1 },
    { outcome: 'http_error', status: 500, durationMs: 14_000, slowInARow: 4, quickAt: 1 },
    { outcome: 'http_error', status: 500, durationMs: 20, slowInARow: 0, quickAt: NOW_MS },
    { outcome: 'timeout', status: null, durationMs: 15_000, slowInARow: 4, quickAt: 1 },
    { outcome: 'unreachable', status: null, durationMs: 4_999, slowInARow: 0, quickAt: 1 },
    { outcome: 'unreachable', status: null, durationMs: 5_000, slowInARow: 4, quickAt: 1 },
    { outcome: 'blocked', status: null, durationMs: 0, slowInARow: 0, quickAt: 1 },
  ])(
    '$outcome after $durationMs ms: $slowInARow slow attempts',
    ({ slowInARow, quickAt, ...result }) => {
      expect(healthAfter(before, result, NOW_MS)).toEqual({ inFlight: 5, slowInARow, quickAt })
    },
  )
})
