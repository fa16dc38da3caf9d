import { describe, expect, it, test } from 'vitest'
import {
  concurrencyLimit,
  type EndpointHealth,
  healthAfter,
  isAtLimit,
  isBelowLimit,
  isBelowSlotQuota,
  isFull,
  type LeaseRound,
  mayStart,
  mayUseHost,
  NOT_SLOW,
  normalRound,
  probeRound,
  quickRound,
  reserveRound,
  slowRound,
  spareRound,
} from '../../webhooks/policy/fairness.ts'

const NOW_MS = 100_000

const endpoint = (changes: Partial<EndpointHealth> = {}): EndpointHealth => ({
  accountId: 'account',
  inFlight: 0,
  ...NOT_SLOW,
  quickAt: Number.NEGATIVE_INFINITY,
  hasResult: false,
  ...changes,
})
const quick = (inFlight: number) => endpoint({ inFlight, quickAt: NOW_MS - 10 })
/** Slow, and its last attempt succeeded. */
const slow = (inFlight: number) => endpoint({ inFlight, slowInARow: 16 })
const hanging = (inFlight: number) => endpoint({ inFlight, slowInARow: 16, slowFailuresInARow: 16 })
const normal = (inFlight: number) => endpoint({ inFlight })
/** A normal endpoint of another account. */
const ofOther = (inFlight: number) => endpoint({ accountId: 'other', inFlight })

it.each([
  { situation: 'nothing is known', health: undefined, expected: true },
  { situation: '15 in flight', health: normal(15), expected: true },
  { situation: '16 in flight', health: normal(16), expected: false },
  { situation: 'quick, 127 in flight', health: quick(127), expected: true },
  { situation: 'quick, 128 in flight', health: quick(128), expected: false },
  { situation: 'slow, none in flight', health: slow(0), expected: false },
])('an attempt may start without a job: $situation: $expected', ({ health, expected }) => {
  expect(isBelowLimit(health, NOW_MS)).toBe(expected)
})

it.each([
  { situation: 'nothing is known', health: undefined, expected: false },
  { situation: '15 in flight', health: normal(15), expected: false },
  { situation: '16 in flight', health: normal(16), expected: true },
  { situation: 'quick, 127 in flight', health: quick(127), expected: false },
  { situation: 'quick, 128 in flight', health: quick(128), expected: true },
  { situation: 'slow, one in flight', health: slow(1), expected: false },
])('an attempt waits for a slot: $situation: $expected', ({ health, expected }) => {
  expect(isFull(health, NOW_MS)).toBe(expected)
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

it.each([
  { situation: 'normal, 16 in flight', endpoints: [normal(16)], expected: true },
  { situation: 'quick, 128 in flight', endpoints: [quick(128)], expected: true },
  { situation: 'hanging, 1 in flight', endpoints: [hanging(1)], expected: true },
  { situation: 'hanging, 2 in flight', endpoints: [hanging(2)], expected: false },
  { situation: 'slow, 16 beside 32 slow', endpoints: [slow(16), slow(32)], expected: true },
  { situation: 'slow, 16 beside 33 slow', endpoints: [slow(16), slow(33)], expected: false },
  { situation: 'slow, 1 beside 100 slow', endpoints: [slow(1), slow(100)], expected: true },
  { situation: 'slow, 16 beside 100 normal', endpoints: [slow(16), normal(100)], expected: true },
])('a leased attempt may start: $situation: $expected', ({ endpoints, expected }) => {
  const map = new Map(endpoints.map((health, index) => [`webhook-${index}`, health]))
  expect(mayStart(map, 'webhook-0')).toBe(expected)
})

it.each([
  { slots: {}, othersMayHaveDue: true, expected: true },
  { slots: { own: 559 }, othersMayHaveDue: false, expected: true },
  { slots: { own: 560 }, othersMayHaveDue: false, expected: false },
  { slots: { own: 279 }, othersMayHaveDue: true, expected: true },
  { slots: { own: 280 }, othersMayHaveDue: true, expected: false },
  { slots: { own: 280, other: 1 }, othersMayHaveDue: false, expected: false },
  { slots: { other: 560 }, othersMayHaveDue: true, expected: true },
])(
  'an account "own" is below its quota: slots $slots, others may have due attempts $othersMayHaveDue: $expected',
  ({ slots, othersMayHaveDue, expected }) => {
    expect(isBelowSlotQuota(new Map(Object.entries(slots)), 'own', othersMayHaveDue)).toBe(expected)
  },
)

it.each([
  { use: {}, expected: true },
  { use: { own: 223 }, expected: true },
  { use: { own: 224 }, expected: false },
  { use: { own: 128, other: 95 }, expected: true },
  { use: { own: 128, other: 96 }, expected: false },
  { use: { own: 127, other: 128 }, expected: true },
  { use: { own: 127, other: 129 }, expected: false },
  { use: { other: 200, third: 50 }, expected: true },
])('a host has another slot for the account "own": used $use: $expected', ({ use, expected }) => {
  expect(mayUseHost(new Map(Object.entries(use)), 'own', true)).toBe(expected)
})

it.each([
  { use: {}, expected: true },
  { use: { own: 15, other: 200 }, expected: true },
  { use: { own: 16 }, expected: false },
  { use: { other: 256 }, expected: false },
])(
  'a host that has never responded with 2xx has another slot for the account "own": used $use: $expected',
  ({ use, expected }) => {
    expect(mayUseHost(new Map(Object.entries(use)), 'own', false)).toBe(expected)
  },
)

describe('lease rounds', () => {
  /** For each round the endpoints that it skips. A round that is left out must not happen. */
  interface Row {
    situation: string
    endpoints: Record<string, EndpointHealth>
    normal: string[]
    spare?: string[]
    quick?: string[]
    probe?: string[]
    slow?: string[]
    reserve: string[]
  }
  const rounds: Row[] = [
    { situation: 'no endpoint in flight', endpoints: {}, normal: [], reserve: [] },
    {
      situation: 'a slow endpoint without an attempt in flight',
      endpoints: { n: normal(3), s: slow(0) },
      normal: ['s'],
      probe: [],
      reserve: ['s'],
    },
    {
      situation: 'a slow endpoint with one attempt in flight, and a hanging one',
      endpoints: { s: slow(1), h: hanging(1) },
      normal: ['s', 'h'],
      slow: ['h'],
      reserve: ['s', 'h'],
    },
    {
      situation: 'a slow endpoint at the normal limit',
      endpoints: { s: slow(16) },
      normal: ['s'],
      reserve: ['s'],
    },
    {
      situation: 'a hanging endpoint',
      endpoints: { h: hanging(1) },
      normal: ['h'],
      reserve: ['h'],
    },
    {
      situation:
        'slow and hanging endpoints of an account with 31 slots, and one of an account with 32',
      endpoints: { a: slow(15), h: hanging(16), s: { ...ofOther(32), slowInARow: 16 } },
      normal: ['a', 'h', 's'],
      slow: ['h', 's'],
      reserve: ['a', 'h', 's'],
    },
    {
      situation: 'a slow endpoint while half of all slots are free',
      endpoints: { n: ofOther(318), s: slow(1) },
      normal: ['s', 'n'],
      spare: ['s'],
      slow: [],
      reserve: ['n', 's'],
    },
    {
      situation: 'a slow endpoint while fewer are free',
      endpoints: { n: ofOther(319), s: slow(1) },
      normal: ['s', 'n'],
      spare: ['s'],
      reserve: ['n', 's'],
    },
    {
      situation: 'a quick endpoint at the normal limit, beside others',
      endpoints: { q: quick(16), full: normal(16), free: normal(2), s: slow(1) },
      normal: ['s'],
      quick: ['full', 's'],
      slow: [],
      reserve: ['q', 'full', 'free', 's'],
    },
    {
      situation: 'a quick endpoint at its own limit',
      endpoints: { q: quick(128) },
      normal: [],
      reserve: ['q'],
    },
    {
      situation: 'an account with all shared slots',
      endpoints: { one: normal(200), two: normal(360) },
      normal: ['one', 'two'],
      spare: [],
      reserve: ['one', 'two'],
    },
    {
      situation:
        'an account with more than half of the slots, another one with few slots and a slow endpoint',
      endpoints: {
        one: normal(200),
        two: normal(100),
        few: ofOther(7),
        s: { ...ofOther(0), slowInARow: 16 },
      },
      normal: ['s', 'one', 'two'],
      spare: ['s'],
      probe: [],
      reserve: ['one', 'two', 's'],
    },
    {
      situation: 'an account with eight slots',
      endpoints: { one: ofOther(5), two: ofOther(3), n: normal(1) },
      normal: [],
      reserve: ['one', 'two'],
    },
  ]
  it.each(rounds)('$situation', ({ endpoints, ...skip }) => {
    const map = new Map(Object.entries(endpoints))
    const round = (limit: number, ids?: string[]): LeaseRound | undefined =>
      ids === undefined ? undefined : { limit, skip: ids }
    expect(normalRound(map, false)).toEqual(round(16, skip.normal))
    expect(spareRound(map, false)).toEqual(round(16, skip.spare))
    expect(quickRound(map, NOW_MS)).toEqual(round(128, skip.quick))
    expect(probeRound(map)).toEqual(round(1, skip.probe))
    expect(slowRound(map)).toEqual(skip.slow && { ...round(16, skip.slow), most: 16 })
    expect(reserveRound(map)).toEqual({ limit: 16, skip: skip.reserve, onlyUrgent: true })
  })
})

test('while other accounts may have due attempts, an account with half of the slots is skipped first', () => {
  const map = new Map(Object.entries({ one: normal(200), two: normal(80), idle: normal(0) }))
  expect(normalRound(map, true)).toEqual({ limit: 16, skip: ['one', 'two', 'idle'] })
  expect(spareRound(map, true)).toEqual({ limit: 16, skip: [] })
  expect(spareRound(map, false)).toBe(undefined)
})

describe('endpoint health after an attempt', () => {
  const before = endpoint({ inFlight: 5, slowInARow: 3, slowFailuresInARow: 2, quickAt: 1 })
  it.each([
    { end: ['success', 200, 250], slow: 0, failed: 0, quickAt: NOW_MS },
    { end: ['success', 200, 251], slow: 0, failed: 0, quickAt: 1 },
    { end: ['success', 200, 4_999], slow: 0, failed: 0, quickAt: 1 },
    { end: ['success', 200, 5_000], slow: 4, failed: 0, quickAt: 1 },
    { end: ['http_error', 500, 14_000], slow: 4, failed: 3, quickAt: 1 },
    { end: ['http_error', 500, 20], slow: 0, failed: 0, quickAt: NOW_MS },
    { end: ['timeout', null, 15_000], slow: 4, failed: 3, quickAt: 1 },
    { end: ['unreachable', null, 4_999], slow: 3, failed: 2, quickAt: 1 },
    { end: ['unreachable', null, 5_000], slow: 4, failed: 3, quickAt: 1 },
    { end: ['blocked', null, 0], slow: 3, failed: 2, quickAt: 1 },
  ] satisfies {
    end: [outcome: string, status: number | null, durationMs: number]
    slow: number
    failed: number
    quickAt: number
  }[])(
    '$end: $slow slow attempts in a row, $failed of them failed',
    ({ end, slow, failed, quickAt }) => {
      const [outcome, status, durationMs] = end
      expect(healthAfter(before, { outcome, status, durationMs }, NOW_MS)).toEqual({
        ...before,
        slowInARow: slow,
        slowFailuresInARow: failed,
        quickAt,
        hasResult: true,
      })
    },
  )
})
