/** Makes the attempts: claims what is due as places become free, sends, and hands the results on. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Agent } from 'undici'
import type { Outcome } from '../../records/attempts.ts'
import type { Db } from '../../records/database/open.ts'
import { withLockedRows } from '../../records/database/transaction.ts'
import { loadSendables, type Sendable } from '../../records/planned-attempts.ts'
import type { MadeAttempt } from '../../records/settlements.ts'
import {
  type EndpointHealth,
  healthAfter,
  isAtLimit,
  type LeaseRound,
  normalRound,
  probeRound,
  quickRound,
} from '../policy/fairness.ts'
import type { Claim, Queue } from '../queue/queue.ts'
import { type SecretOpener, SecretUnreadable } from '../transport/secret.ts'
import { type SendResult, send } from '../transport/send.ts'
import { deliveryHeaders } from '../transport/sign.ts'
import type { Settled } from './settle.ts'
import { wakeable } from './wakeable.ts'

export interface Pump {
  /** The queue may have something that is due. */
  wake(): void
  /** Results are stored, and their places free. */
  free(settled: Settled[]): void
  /** Does this process hold an attempt of the delivery? */
  isHeld(deliveryId: string): boolean
  counts(): { claimed: number; sending: number; outcomes: Record<Outcome, number> }
  /** Claims nothing more and resolves when nothing is being sent, or after `graceMs`. */
  drain(graceMs: number): Promise<void>
  /** Stops touching claims, and gives back those that are left. */
  stop(): Promise<void>
}

export interface PumpOptions {
  db: Db
  queue: Queue
  agent: Agent
  openSecret: SecretOpener
  timeoutMs: number
  now: () => Date
  log: Logger
  onSettled: (settled: Settled) => void
  /** Called when attempts were claimed, or none was there to be. */
  onClaimed: () => void
}

/** Attempts held by this process, those whose results are not stored included: as many may be made twice when it is killed. */
const PLACES = 512
/** Claims are made when at least this many places are free, so that each is worth its query. */
const CLAIM_AT = PLACES / 4
/** Unless the last claim is as long ago as this: attempts that last may leave fewer places than that for long. */
const IDLE_MS = 100
/** The longest that a claim waits for the sends of the one before to begin. */
const BEGIN_MS = 20
const PROBE_MS = 200
const POLL_MS = 1_000
const TOUCH_MS = 3_000
const RETRY_MS = 500

const NEW_ENDPOINT: EndpointHealth = {
  inFlight: 0,
  timeoutsInARow: 0,
  quickAt: Number.NEGATIVE_INFINITY,
}

export function startPump(options: PumpOptions): Pump {
  const { db, queue, agent, openSecret, timeoutMs, now, log, onSettled, onClaimed } = options
  const held = new Map<string, Claim>()
  const deliveries = new Set<string>()
  const webhooks = new Map<string, EndpointHealth>()
  /** Deliveries of which an attempt is being sent, or its result not stored yet. */
  const underWay = new Set<string>()
  const outcomes: Record<Outcome, number> = {
    success: 0,
    http_error: 0,
    timeout: 0,
    unreachable: 0,
    blocked: 0,
  }
  const sending = new Set<Promise<void>>()
  let claimedAt = Number.NEGATIVE_INFINITY
  let probedAt = Number.NEGATIVE_INFINITY
  let waitingForPlaces = false
  let soon: NodeJS.Timeout | undefined
  let stopping = false

  const loop = wakeable(
    async () => {
      clearTimeout(soon)
      while (!stopping) {
        const free = PLACES - held.size
        // A claim should be worth its query, and yet no place lie idle.
        waitingForPlaces = free < (performance.now() - claimedAt < IDLE_MS ? CLAIM_AT : 1)
        if (waitingForPlaces) {
          soon = setTimeout(loop.wake, IDLE_MS)
          return
        }
        claimedAt = performance.now()
        const claimed = await take(await claim(free))
        onClaimed()
        const probes = await take(await claimProbes(free - claimed))
        if (claimed + probes === 0) return
      }
    },
    (error) => log.warn({ err: error }, 'attempts could not be claimed from the queue'),
  )
  const poll = setInterval(loop.wake, POLL_MS)
  const touching = setInterval(touch, TOUCH_MS)
  let retouch: NodeJS.Timeout | undefined

  /** Makes the attempts beside what follows. Returns how many. Where they are few, little waits, and their sends come before the next claim. */
  async function take(claims: Claim[]): Promise<number> {
    if (claims.length === 0) return 0
    const begun = Promise.withResolvers<void>()
    const work = makeAttempts(claims.filter(hold), begun.resolve)
    sending.add(work)
    work.finally(() => sending.delete(work))
    if (claims.length < CLAIM_AT) await Promise.race([begun.promise, delay(BEGIN_MS)])
    return claims.length
  }

  /** Fewer than the limit does not mean that the queue is empty: concurrency limits may have cut the round short. */
  async function claim(free: number): Promise<Claim[]> {
    const claims = await claimRound(free, normalRound(webhooks, performance.now()))
    return claims.length > 0 ? claims : claimRound(free, quickRound(webhooks, performance.now()))
  }

  async function claimProbes(free: number): Promise<Claim[]> {
    const round = probeRound(webhooks, performance.now())
    if (!round || free <= 0 || performance.now() - probedAt < PROBE_MS) return []
    probedAt = performance.now()
    return claimRound(free, round)
  }

  async function claimRound(free: number, round: LeaseRound | undefined): Promise<Claim[]> {
    return round ? queue.claim(free, round.limit, round.skip) : []
  }

  function healthOf(webhookId: string): EndpointHealth {
    return webhooks.get(webhookId) ?? NEW_ENDPOINT
  }

  function setHealth(webhookId: string, health: EndpointHealth): void {
    if (health.inFlight === 0 && health.timeoutsInARow === 0) webhooks.delete(webhookId)
    else webhooks.set(webhookId, health)
  }

  /** Takes a place. False when this process makes the attempt already: its claim had lapsed, and is now renewed. */
  function hold(claim: Claim): boolean {
    const known = held.get(claim.jobId)
    if (known) {
      known.retryCount = claim.retryCount
      return false
    }
    held.set(claim.jobId, claim)
    const { webhookId, deliveryId } = claim.planned
    deliveries.add(deliveryId)
    const health = healthOf(webhookId)
    setHealth(webhookId, { ...health, inFlight: health.inFlight + 1 })
    return true
  }

  function letGo({ jobId, planned: { webhookId, deliveryId } }: Claim): void {
    if (!held.delete(jobId)) return
    deliveries.delete(deliveryId)
    const health = healthOf(webhookId)
    setHealth(webhookId, { ...health, inFlight: health.inFlight - 1 })
  }

  async function makeAttempts(claims: Claim[], onBegun: () => void): Promise<void> {
    const attempts: Promise<void>[] = []
    for (let left = claims; left.length > 0 && !stopping; ) {
      left = await begin(left, attempts, onBegun)
      if (left.length === 0) break
      await delay(RETRY_MS)
      left = await stillHeld(left)
    }
    await Promise.all(attempts)
  }

  /** Begins the attempts that can begin; returns the others. What has begun has begun, whatever becomes of the locks. */
  async function begin(
    claims: Claim[],
    attempts: Promise<void>[],
    onBegun: () => void,
  ): Promise<Claim[]> {
    const planned = claims.map((claim) => claim.planned)
    let left = claims
    const beginWith = (sendables: Map<string, Sendable>): void => {
      left = []
      for (const claim of claims) {
        const delivery = sendables.get(claim.planned.deliveryId)
        const isWanted = delivery?.nextAttemptAt === claim.planned.dueAt
        if (isWanted && (delivery.webhook === undefined || underWay.has(delivery.id)))
          left.push(claim)
        else attempts.push(makeAttempt(claim, isWanted ? delivery : undefined))
      }
      onBegun()
    }
    try {
      if (db.dialect === 'sqlite')
        beginWith(await loadSendables({ dialect: db.dialect, sql: db.read }, planned))
      else await withLockedRows(db, (source) => loadSendables(source, planned), beginWith)
    } catch (error) {
      if (left === claims)
        log.warn({ err: error }, 'deliveries could not be loaded, and will be tried again')
    }
    return left
  }

  /** Waiting may have taken longer than a claim lasts: what another process has by now is its own. */
  async function stillHeld(claims: Claim[]): Promise<Claim[]> {
    try {
      const own = await queue.touch(claims)
      for (const claim of claims) if (!own.has(claim.jobId)) letGo(claim)
      return claims.filter(({ jobId }) => own.has(jobId))
    } catch {
      return claims
    }
  }

  async function makeAttempt(claim: Claim, delivery: Sendable | undefined): Promise<void> {
    const { planned } = claim
    if (delivery?.webhook === undefined) return onSettled({ claim })
    const { webhook, orderingKey } = delivery
    if (!webhook.enabled) {
      setHealth(webhook.id, { ...healthOf(webhook.id), timeoutsInARow: 0 })
      const notMade = webhook.deleted ? 'webhook_deleted' : 'webhook_disabled'
      return onSettled({
        claim,
        settlement: { planned, orderingKey, result: { notMade }, endedAt: now().getTime() },
      })
    }
    underWay.add(delivery.id)
    const result = await sendOne(delivery, webhook)
    const attempt: MadeAttempt = { trigger: delivery.trigger, ...result }
    outcomes[attempt.outcome]++
    const health = healthOf(webhook.id)
    const after = healthAfter(health, result, performance.now())
    setHealth(webhook.id, after)
    if (after.timeoutsInARow < health.timeoutsInARow) loop.wake()
    const fields = {
      delivery: delivery.id,
      webhook: webhook.id,
      attempt: planned.number,
      outcome: attempt.outcome,
      status: attempt.status,
      duration_ms: attempt.durationMs,
    }
    if (attempt.outcome === 'success') log.debug(fields, 'delivered')
    else log.info({ ...fields, error: attempt.error }, 'an attempt to deliver failed')
    onSettled({
      claim,
      settlement: { planned, orderingKey, result: { attempt }, endedAt: now().getTime() },
    })
  }

  async function sendOne(
    { id, body }: Sendable,
    webhook: NonNullable<Sendable['webhook']>,
  ): Promise<SendResult> {
    try {
      const headers = deliveryHeaders(openSecret(webhook.id, webhook.sealedSecret), id, body, now())
      return await send(agent, { url: webhook.url, headers, body, timeoutMs })
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error
      const nothing = {
        status: null,
        responseHeaders: null,
        responseBody: null,
        address: null,
        phases: null,
        retryAfterAt: null,
      }
      const unsent = { ...nothing, startedAt: now().getTime(), durationMs: 0 }
      return {
        ...unsent,
        outcome: 'blocked',
        error: 'Nothing was sent: the signing secret cannot be read. Was SECRET_KEY changed?',
      }
    }
  }

  function touch(): void {
    queue.touch([...held.values()]).catch((error: unknown) => {
      log.warn({ err: error }, 'claims could not be renewed, and will be soon')
      // One at a time: the interval goes on meanwhile.
      clearTimeout(retouch)
      retouch = setTimeout(touch, RETRY_MS)
    })
  }

  return {
    wake: loop.wake,
    isHeld: (deliveryId) => deliveries.has(deliveryId),
    free(settled) {
      // On PostgreSQL other processes may hold the rest of a share, so any place may be the one that was missing.
      let shareFreed = db.dialect === 'postgres'
      for (const { claim, settlement } of settled) {
        const { webhookId, deliveryId } = claim.planned
        if (settlement) underWay.delete(deliveryId)
        shareFreed ||= isAtLimit(healthOf(webhookId), performance.now())
        letGo(claim)
      }
      if (shareFreed || (waitingForPlaces && PLACES - held.size >= CLAIM_AT)) loop.wake()
    },
    counts: () => ({ claimed: held.size, sending: sending.size, outcomes: { ...outcomes } }),
    async drain(graceMs) {
      stopping = true
      clearInterval(poll)
      clearTimeout(soon)
      await loop.stop()
      const grace = new AbortController()
      await Promise.race([
        Promise.all(sending),
        delay(graceMs, undefined, { signal: grace.signal }).catch(() => undefined),
      ])
      grace.abort()
    },
    async stop() {
      clearInterval(touching)
      clearTimeout(retouch)
      await queue
        .release([...held.values()])
        .catch((error: unknown) => log.warn({ err: error }, 'claims could not be given back'))
      // Nothing is left to renew, should a renewal still be on its way.
      held.clear()
    },
  }
}
