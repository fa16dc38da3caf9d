/** Fairness between webhooks: how many attempts of each may be in the queue, and how many in flight. */

/** Slots of one process. When it is killed, at most this many attempts are made twice. */
export const MAX_IN_FLIGHT = 512

/** Due attempts in the queue, about: more would only slow down every lease. */
const QUEUE_SIZE = 1_536
/** The queue quota of a webhook never falls below this. */
const MIN_QUEUE_QUOTA = 16

const PROBE_LIMIT = 1
const NORMAL_LIMIT = 16
/** Most of the time, attempts to a quick endpoint wait for their results to be stored. */
const QUICK_LIMIT = 128
/** An endpoint with this many slow attempts in a row is slow. */
const SLOW_AFTER = 16
/** An attempt that takes longer is slow, whatever its outcome: it uses a slot for as long. */
const SLOW_ATTEMPT_MS = 5_000
/** A response within this time is quick. */
const QUICK_RESPONSE_MS = 250
/** An endpoint counts as quick for this long after a quick response. */
const QUICK_FOR_MS = 1_000

/** The most due attempts that each webhook may have in the queue: an equal part for each that has any. */
export function queueQuota(webhooksInQueue: number): number {
  return Math.max(MIN_QUEUE_QUOTA, Math.floor(QUEUE_SIZE / Math.max(1, webhooksInQueue)))
}

/** The webhooks whose due attempts in the queue have reached the quota. */
export function webhooksAtQuota(queued: ReadonlyMap<string, number>, quota: number): Set<string> {
  return new Set([...queued].filter(([, count]) => count >= quota).map(([webhookId]) => webhookId))
}

/** The attempts that fit into the queue quota of their webhooks, in their order. Attempts scheduled
 *  after `nowMs` take none of it. Without a quota the backlog of one hanging endpoint, which is the
 *  oldest, would fill every batch. */
export function selectWithinQuota<T extends { webhookId: string; scheduledAt: number }>(
  attempts: T[],
  queued: ReadonlyMap<string, number>,
  quota: number,
  nowMs: number,
): T[] {
  const selected = new Map<string, number>()
  return attempts.filter(({ webhookId, scheduledAt }) => {
    if (scheduledAt > nowMs) return true
    const count = selected.get(webhookId) ?? 0
    if ((queued.get(webhookId) ?? 0) + count >= quota) return false
    selected.set(webhookId, count + 1)
    return true
  })
}

/** The state of a webhook's endpoint, as this process has seen it. Times are of the monotonic clock. */
export interface EndpointHealth {
  inFlight: number
  /** Slow attempts since the last one that was not. */
  slowInARow: number
  /** The time of the last quick response. */
  quickAt: number
}

type Endpoints = ReadonlyMap<string, EndpointHealth>

/** The most attempts of one webhook in flight, over all processes. A slow endpoint is probed one
 *  attempt at a time. */
export function concurrencyLimit(
  { slowInARow, quickAt }: Omit<EndpointHealth, 'inFlight'>,
  nowMs: number,
): 1 | 16 | 128 {
  if (slowInARow >= SLOW_AFTER) return PROBE_LIMIT
  return nowMs - quickAt < QUICK_FOR_MS ? QUICK_LIMIT : NORMAL_LIMIT
}

/** One request for leases: due attempts of all webhooks except `skip`, up to `limit` in flight for
 *  each webhook. */
export interface LeaseRound {
  limit: number
  skip: string[]
}

/** The first round: all webhooks except those with a slow endpoint. */
export function normalRound(endpoints: Endpoints, nowMs: number): LeaseRound {
  return { limit: NORMAL_LIMIT, skip: listSlow(endpoints, nowMs) }
}

/** The round after a normal one that found nothing: more attempts of quick endpoints that have
 *  reached the normal limit. Undefined: there is no such endpoint. */
export function quickRound(endpoints: Endpoints, nowMs: number): LeaseRound | undefined {
  const isQuick = (health: EndpointHealth) => concurrencyLimit(health, nowMs) === QUICK_LIMIT
  const full = [...endpoints].filter(([, { inFlight }]) => inFlight >= NORMAL_LIMIT)
  if (!full.some(([, health]) => isQuick(health) && health.inFlight < QUICK_LIMIT)) return undefined
  const others = full.filter(([, health]) => !isQuick(health)).map(([webhookId]) => webhookId)
  return { limit: QUICK_LIMIT, skip: [...others, ...listSlow(endpoints, nowMs)] }
}

/** The last round: one attempt to each slow endpoint. Undefined: each has one in flight. */
export function probeRound(endpoints: Endpoints, nowMs: number): LeaseRound | undefined {
  const slow = listSlow(endpoints, nowMs)
  const isProbed = slow.every((webhookId) => endpoints.get(webhookId)?.inFlight)
  return isProbed ? undefined : { limit: PROBE_LIMIT, skip: [] }
}

/** Whether the next round leases no more attempts of the webhook until one in flight ends. */
export function isAtLimit(health: EndpointHealth, nowMs: number): boolean {
  return health.inFlight >= Math.min(NORMAL_LIMIT, concurrencyLimit(health, nowMs))
}

function listSlow(endpoints: Endpoints, nowMs: number): string[] {
  return [...endpoints]
    .filter(([, health]) => concurrencyLimit(health, nowMs) === PROBE_LIMIT)
    .map(([webhookId]) => webhookId)
}

/** The health of an endpoint after an attempt. */
export function healthAfter(
  health: EndpointHealth,
  { outcome, status, durationMs }: { outcome: string; status: number | null; durationMs: number },
  nowMs: number,
): EndpointHealth {
  const isSlow = outcome === 'timeout' || durationMs >= SLOW_ATTEMPT_MS
  const isQuick = status !== null && durationMs <= QUICK_RESPONSE_MS
  return {
    inFlight: health.inFlight,
    slowInARow: isSlow ? health.slowInARow + 1 : 0,
    quickAt: isQuick ? nowMs : health.quickAt,
  }
}
