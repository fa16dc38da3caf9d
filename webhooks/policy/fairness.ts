/** Fairness: the slots and the queue are divided among the accounts first, then among the webhooks
 *  of each account. */

/** Slots of one process. When it is killed, at most this many attempts are made twice. */
export const MAX_IN_FLIGHT = 640
/** Slots that all attempts share. The others are for accounts that hold few slots. */
export const SHARED_SLOTS = (MAX_IN_FLIGHT * 7) / 8
/** An account that holds fewer slots than this may use slots that are not shared. */
const FEW_SLOTS = 8

/** Slots of one process for attempts to one host, of all accounts. */
const HOST_SLOTS = 256
/** Slots of one account for attempts to a host that has never responded with 2xx to this
 *  process. */
const NEW_HOST_SLOTS = 16

/** For each worker, the queue holds due attempts for all its slots, and as many that wait. It holds
 *  about this many beside them. With fewer waiting attempts, the queue is sometimes empty before the
 *  next refill; more would slow down every lease. */
const QUEUE_AHEAD = 1_408
/** The parts of the queue for one account and one webhook are never smaller than these. */
const MIN_ACCOUNT_QUOTA = 16
const MIN_WEBHOOK_QUOTA = 4
/** At most this many attempts of an account in the queue are urgent: they are leased before all
 *  others. */
const URGENT_COUNT = 64

/** The concurrency limit of a webhook whose endpoint is slow. */
const PROBE_LIMIT = 1
const NORMAL_LIMIT = 16
/** Higher, because an attempt to a quick endpoint mostly waits for its result to be stored. */
const QUICK_LIMIT = 128
/** An endpoint with this many slow attempts in a row is slow. If all of them failed, it hangs. */
export const SLOW_AFTER = 16
/** The slow endpoints of an account get no more than one slot each once they hold this many
 *  together. */
const SLOW_SLOTS = 32
/** The most attempts that one `slowRound` leases. */
const SLOW_BATCH = 16
/** An attempt that takes this long is slow, whatever its outcome: it holds its slot for so long. */
export const SLOW_ATTEMPT_MS = 5_000
/** A response within this time is quick. */
const QUICK_RESPONSE_MS = 250
/** An endpoint counts as quick for this long after a quick response. */
const QUICK_FOR_MS = 1_000

export interface QueueUse {
  /** The number of due attempts in the queue, by account ID and webhook ID. */
  accounts: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** The number of processes that lease from the queue. */
  workers: number
}

/** The most due attempts that each webhook of the account may have in the queue. The accounts with
 *  attempts in the queue share the queue equally. The webhooks with attempts in the queue share the
 *  part of their account equally. */
export function queueQuota({ accounts, workers }: QueueUse, accountId: string): number {
  const webhooks = accounts.get(accountId)?.size ?? 1
  const accountCount = accounts.size + (accounts.has(accountId) ? 0 : 1)
  const queueSize = QUEUE_AHEAD + 2 * MAX_IN_FLIGHT * Math.max(1, workers)
  const equalPart = Math.max(MIN_ACCOUNT_QUOTA, Math.floor(queueSize / accountCount))
  // One account never gets the whole queue, even if no other account has attempts there.
  const accountQuota = Math.min((queueSize * 7) / 8, equalPart)
  return Math.max(MIN_WEBHOOK_QUOTA, Math.floor(accountQuota / webhooks))
}

/** How many more attempts each webhook may have in the queue, for webhooks that have any there. 0
 *  or less: the webhook has reached its quota. */
export function freeQuota(use: QueueUse): Map<string, number> {
  return new Map(
    [...use.accounts].flatMap(([accountId, webhooks]) => {
      const quota = queueQuota(use, accountId)
      return [...webhooks].map(([webhookId, count]): [string, number] => [webhookId, quota - count])
    }),
  )
}

export interface Selected<T> {
  attempts: T[]
  /** Selected attempts that go before others: their accounts have few attempts in the queue. */
  urgent: ReadonlySet<T>
}

/** The attempts that fit into the queue quotas of their webhooks, in their order. Attempts
 *  scheduled after `nowMs` take no quota. Without quotas, the backlog of one hanging endpoint would
 *  fill every batch, because it is the oldest. */
export function selectWithinQuota<
  T extends { accountId: string; webhookId: string; scheduledAt: number },
>(attempts: T[], use: QueueUse, nowMs: number): Selected<T> {
  const ofWebhook = new Map<string, number>()
  const ofAccount = new Map<string, number>()
  const urgent = new Set<T>()
  const selected = attempts.filter((attempt) => {
    const { accountId, webhookId, scheduledAt } = attempt
    const webhooks = use.accounts.get(accountId)
    const count = ofWebhook.get(webhookId) ?? 0
    if (scheduledAt <= nowMs) {
      if ((webhooks?.get(webhookId) ?? 0) + count >= queueQuota(use, accountId)) return false
      ofWebhook.set(webhookId, count + 1)
    }
    const position = ofAccount.get(accountId) ?? sum(webhooks)
    ofAccount.set(accountId, position + 1)
    if (position < URGENT_COUNT) urgent.add(attempt)
    return true
  })
  return { attempts: selected, urgent }
}

function sum(counts: ReadonlyMap<string, number> = new Map()): number {
  return [...counts.values()].reduce((total, count) => total + count, 0)
}

export interface Slowness {
  /** Slow attempts since the last response within `SLOW_ATTEMPT_MS`. */
  slowInARow: number
  /** How many of these came after the last slow attempt that succeeded. */
  slowFailuresInARow: number
}

export const NOT_SLOW: Slowness = { slowInARow: 0, slowFailuresInARow: 0 }

/** The state of a webhook's endpoint, as this process has seen it. Times are of the monotonic
 *  clock. */
export interface EndpointHealth extends Slowness {
  accountId: string
  inFlight: number
  /** The time of the last quick response. */
  quickAt: number
  /** False: no result is known, and the slowness may be that of the host. */
  hasResult: boolean
}

type Endpoints = ReadonlyMap<string, EndpointHealth>

/** The most attempts of one webhook in flight, over all processes. `slowRound` allows more
 *  for slow endpoints. */
export function concurrencyLimit(health: EndpointHealth, nowMs: number): 1 | 16 | 128 {
  if (isSlow(health)) return PROBE_LIMIT
  return nowMs - health.quickAt < QUICK_FOR_MS ? QUICK_LIMIT : NORMAL_LIMIT
}

/** One request for leases: due attempts of all webhooks except `skip`, up to `limit` in flight for
 *  each webhook. */
export interface LeaseRound {
  limit: number
  skip: string[]
  onlyUrgent?: true
  /** The most attempts of all webhooks together. Undefined: as many as slots are free. */
  most?: number
}

/** The first round: all webhooks except those with a slow endpoint and those of an account that has
 *  reached its equal part of the shared slots. `othersMayHaveDue`: an account that holds no slots
 *  may have due attempts. */
export function normalRound(endpoints: Endpoints, othersMayHaveDue: boolean): LeaseRound {
  const atQuota = listAtSlotQuota(endpoints, othersMayHaveDue)
  const skip = new Set([...listSlow(endpoints), ...atQuota])
  return { limit: NORMAL_LIMIT, skip: [...skip] }
}

/** The round after a normal one that found nothing: more attempts of accounts that have reached
 *  their part. Undefined: there is no such account. */
export function spareRound(
  endpoints: Endpoints,
  othersMayHaveDue: boolean,
): LeaseRound | undefined {
  if (listAtSlotQuota(endpoints, othersMayHaveDue).length === 0) return undefined
  return { limit: NORMAL_LIMIT, skip: listSlow(endpoints) }
}

/** The round after a spare one that found nothing: more attempts of quick endpoints that have
 *  reached the normal limit. Undefined: there is no such endpoint. */
export function quickRound(endpoints: Endpoints, nowMs: number): LeaseRound | undefined {
  const isQuick = (health: EndpointHealth) => concurrencyLimit(health, nowMs) === QUICK_LIMIT
  const full = [...endpoints].filter(([, { inFlight }]) => inFlight >= NORMAL_LIMIT)
  if (!full.some(([, health]) => isQuick(health) && health.inFlight < QUICK_LIMIT)) return undefined
  const notQuick = full.filter(([, health]) => !isQuick(health)).map(([webhookId]) => webhookId)
  return { limit: QUICK_LIMIT, skip: [...notQuick, ...listSlow(endpoints)] }
}

/** The round after the normal, spare and quick ones: one attempt to each slow endpoint. Undefined:
 *  each has one in flight. */
export function probeRound(endpoints: Endpoints): LeaseRound | undefined {
  const slow = listSlow(endpoints)
  const isProbed = slow.every((webhookId) => endpoints.get(webhookId)?.inFlight)
  return isProbed ? undefined : { limit: PROBE_LIMIT, skip: [] }
}

/** The last round: more attempts to slow endpoints that succeed, while the slow endpoints of their
 *  account hold few slots together. Undefined: there is no such endpoint, or half of all slots are
 *  taken. */
export function slowRound(endpoints: Endpoints): LeaseRound | undefined {
  if (sum(slotsByAccount(endpoints.values())) >= MAX_IN_FLIGHT / 2) return undefined
  const slow = [...endpoints].filter(([, health]) => isSlow(health))
  const slots = slotsByAccount(slow.map(([, health]) => health))
  const mayHaveMore = (health: EndpointHealth): boolean =>
    !isHanging(health) &&
    health.inFlight >= PROBE_LIMIT &&
    health.inFlight < NORMAL_LIMIT &&
    (slots.get(health.accountId) ?? 0) < SLOW_SLOTS
  const skip = slow.filter(([, health]) => !mayHaveMore(health))
  if (skip.length === slow.length) return undefined
  return { limit: NORMAL_LIMIT, skip: skip.map(([webhookId]) => webhookId), most: SLOW_BATCH }
}

/** The round for the slots that are not shared: urgent attempts of accounts that hold few slots. */
export function reserveRound(endpoints: Endpoints): LeaseRound {
  const slots = slotsByAccount(endpoints.values())
  const skip = [...endpoints].filter(
    ([, health]) => (slots.get(health.accountId) ?? 0) >= FEW_SLOTS || isSlow(health),
  )
  return { limit: NORMAL_LIMIT, skip: skip.map(([webhookId]) => webhookId), onlyUrgent: true }
}

/** The webhooks of accounts that hold their equal part of the shared slots, or more. */
function listAtSlotQuota(endpoints: Endpoints, othersMayHaveDue: boolean): string[] {
  const slots = slotsByAccount(endpoints.values())
  return [...endpoints]
    .filter(([, { accountId }]) => !isBelowSlotQuota(slots, accountId, othersMayHaveDue))
    .map(([webhookId]) => webhookId)
}

/** Whether the account holds less than its equal part of the shared slots. `slots`: the number that
 *  each account holds, without accounts that hold none. */
export function isBelowSlotQuota(
  slots: ReadonlyMap<string, number>,
  accountId: string,
  othersMayHaveDue: boolean,
): boolean {
  const accounts = Math.max(1, slots.size + (othersMayHaveDue ? 1 : 0))
  return (slots.get(accountId) ?? 0) < SHARED_SLOTS / accounts
}

/** The slots of each account that holds any. */
function slotsByAccount(endpoints: Iterable<EndpointHealth>): Map<string, number> {
  const slots = new Map<string, number>()
  for (const { accountId, inFlight } of endpoints)
    if (inFlight > 0) slots.set(accountId, (slots.get(accountId) ?? 0) + inFlight)
  return slots
}

/** Whether a leased attempt may start. A slow endpoint may have too many leased attempts, from
 *  before it was known to be slow. */
export function mayStart(endpoints: Endpoints, webhookId: string): boolean {
  const health = endpoints.get(webhookId)
  if (!health || !isSlow(health) || health.inFlight <= PROBE_LIMIT) return true
  if (isHanging(health)) return false
  const slots = slotsByAccount([...endpoints.values()].filter(isSlow))
  return (slots.get(health.accountId) ?? 0) <= SLOW_SLOTS + SLOW_BATCH
}

/** Whether another attempt of the account to a host may start. `use`: the slots of the host by
 *  account. An account that has its equal part gets another slot while more than an eighth of the
 *  slots is free. `isProven`: the host has responded with 2xx. */
export function mayUseHost(
  use: ReadonlyMap<string, number>,
  accountId: string,
  isProven: boolean,
): boolean {
  const own = use.get(accountId) ?? 0
  if (!isProven && own >= NEW_HOST_SLOTS) return false
  const accounts = Math.max(2, use.size + (use.has(accountId) ? 0 : 1))
  const isBelowPart = own < HOST_SLOTS / accounts
  return sum(use) < (isBelowPart ? HOST_SLOTS : (HOST_SLOTS * 7) / 8)
}

/** Whether another attempt of the webhook may start. Call this only if the webhook has no other due
 *  attempt. `health`: undefined if nothing is known of the endpoint. */
export function isBelowLimit(health: EndpointHealth | undefined, nowMs: number): boolean {
  return !health || (!isSlow(health) && health.inFlight < concurrencyLimit(health, nowMs))
}

/** Whether the webhook is at its limit only until attempts in flight end: its endpoint is not slow. */
export function isFull(health: EndpointHealth | undefined, nowMs: number): boolean {
  return health !== undefined && !isSlow(health) && !isBelowLimit(health, nowMs)
}

/** Whether normal rounds lease no more attempts of the webhook until one in flight ends. */
export function isAtLimit(health: EndpointHealth, nowMs: number): boolean {
  return health.inFlight >= Math.min(NORMAL_LIMIT, concurrencyLimit(health, nowMs))
}

function listSlow(endpoints: Endpoints): string[] {
  return [...endpoints].filter(([, health]) => isSlow(health)).map(([webhookId]) => webhookId)
}

function isSlow({ slowInARow }: Slowness): boolean {
  return slowInARow >= SLOW_AFTER
}

function isHanging({ slowFailuresInARow }: Slowness): boolean {
  return slowFailuresInARow >= SLOW_AFTER
}

interface AttemptEnd {
  outcome: string
  status: number | null
  durationMs: number
}

export function healthAfter<Health extends EndpointHealth>(
  health: Health,
  attempt: AttemptEnd,
  nowMs: number,
): Health {
  const isQuick = attempt.status !== null && attempt.durationMs <= QUICK_RESPONSE_MS
  return {
    ...health,
    ...slownessAfter(health, attempt),
    quickAt: isQuick ? nowMs : health.quickAt,
    hasResult: true,
  }
}

export function slownessAfter(
  before: Slowness,
  { outcome, status, durationMs }: AttemptEnd,
): Slowness {
  if (outcome === 'timeout' || durationMs >= SLOW_ATTEMPT_MS)
    return {
      slowInARow: before.slowInARow + 1,
      slowFailuresInARow: outcome === 'success' ? 0 : before.slowFailuresInARow + 1,
    }
  // A failure that is not slow and has no response says nothing about the endpoint: while a failed
  // look-up of the host name is remembered, attempts fail at once.
  return status === null ? before : NOT_SLOW
}
