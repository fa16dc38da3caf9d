/** Makes the attempts: claims what is due as places become free, sends, and hands the results on. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Agent } from 'undici'
import { type Db, transaction } from '../records/db.ts'
import type { Outcome } from '../records/deliveries.ts'
import { loadSendables, type MadeAttempt, type Sendable } from '../records/planned-attempts.ts'
import type { Claim, Queue, Tier } from './queue.ts'
import { type SecretOpener, SecretUnreadable } from './secret.ts'
import { type SendResult, send } from './send.ts'
import type { Settled } from './settle.ts'
import { deliveryHeaders } from './sign.ts'
import { wakeable } from './wakeable.ts'

export interface Pump {
  /** The queue may have something that is due. */
  wake(): void
  /** How a webhook's endpoint does: `slow` when it has kept timing out. */
  tierOf(webhookId: string): Tier
  /** Results are stored, and their places free. */
  free(settled: Settled[]): void
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
/** Attempts of one webhook under way at once, results to be stored included: a slow endpoint cannot take all the places. */
const SHARE = 16
/** And of one whose endpoint let so many in a row time out: it is probed, and has its share again once it answers anything. */
const SLOW_SHARE = 1
const SLOW_AFTER = SHARE
/** And of one whose endpoint has just answered quickly: for most of the time, storing is what they wait for. */
const QUICK_SHARE = 128
const QUICK_MS = 250
const JUST_MS = 1_000
const POLL_MS = 1_000
const TOUCH_MS = 3_000
const RETRY_MS = 500

interface Held {
  claim: Claim
  /** By `performance.now()`: a clock that is set back must not keep claims from being renewed. */
  touchedAt: number
}

export function startPump(options: PumpOptions): Pump {
  const { db, queue, agent, openSecret, timeoutMs, now, log, onSettled, onClaimed } = options
  const held = new Map<string, Held>()
  const webhooks = new Map<string, { held: number; quickAt: number }>()
  const timeoutsInARow = new Map<string, number>()
  const outcomes: Record<Outcome, number> = { success: 0, http_error: 0, timeout: 0, unreachable: 0, blocked: 0 }
  const sending = new Set<Promise<void>>()
  let waitingForPlaces = false
  let stopping = false

  const tierOf = (webhookId: string): Tier => ((timeoutsInARow.get(webhookId) ?? 0) >= SLOW_AFTER ? 'slow' : 'normal')

  const loop = wakeable(
    async () => {
      while (!stopping) {
        const free = PLACES - held.size
        waitingForPlaces = free < CLAIM_AT
        if (waitingForPlaces) return
        // Fewer than asked for does not mean that the queue is empty: a webhook's share may have cut the answer short.
        let claims = await queue.claim(free, { normal: SHARE, slow: SLOW_SHARE })
        if (claims.length === 0) claims = await claimMoreOfQuick(free)
        onClaimed()
        if (claims.length === 0) return
        const slowed = claims.filter(({ tier, planned }) => tier === 'normal' && tierOf(planned.webhookId) === 'slow')
        if (slowed.length > 0) await requeue(slowed)
        const work = makeAttempts(claims.filter((claim) => !slowed.includes(claim) && hold(claim)))
        sending.add(work)
        work.finally(() => sending.delete(work))
      }
    },
    (error) => log.warn({ err: error }, 'attempts could not be claimed from the queue'),
  )
  const poll = setInterval(loop.wake, POLL_MS)
  const touching = setInterval(touch, TOUCH_MS)

  /** When every webhook that has something due has its share: more for those that are quick. */
  async function claimMoreOfQuick(free: number): Promise<Claim[]> {
    const full = [...webhooks].filter(([, { held }]) => held >= SHARE)
    const isQuick = ({ quickAt }: { quickAt: number }): boolean => performance.now() - quickAt < JUST_MS
    if (!full.some(([, webhook]) => isQuick(webhook) && webhook.held < QUICK_SHARE)) return []
    const slow = full.filter(([, webhook]) => !isQuick(webhook)).map(([id]) => id)
    return queue.claim(free, { normal: QUICK_SHARE, slow: SLOW_SHARE }, slow)
  }

  /** Queued before their endpoint was slow. Killed in between, they are found missing. */
  async function requeue(claims: Claim[]): Promise<void> {
    await queue.drop(claims)
    await queue.add(
      claims.map(({ planned }) => planned),
      now(),
      tierOf,
    )
  }

  /** Takes a place. False when this process makes the attempt already: its claim had lapsed, and is now renewed. */
  function hold(claim: Claim): boolean {
    const known = held.get(claim.jobId)
    if (known) {
      known.claim.retryCount = claim.retryCount
      return false
    }
    held.set(claim.jobId, { claim, touchedAt: performance.now() })
    const { webhookId } = claim.planned
    const webhook = webhooks.get(webhookId)
    if (webhook) webhook.held++
    else webhooks.set(webhookId, { held: 1, quickAt: Number.NEGATIVE_INFINITY })
    return true
  }

  async function makeAttempts(claims: Claim[]): Promise<void> {
    const ids = claims.map(({ planned }) => planned.deliveryId)
    let attempts: Promise<void>[] = []
    const begin = (sendables: Map<string, Sendable>): void => {
      // A transaction that is run again must not send again.
      if (attempts.length === 0) attempts = claims.map((claim) => makeAttempt(claim, sendables.get(claim.planned.deliveryId)))
    }
    // Until the engine stops. What has begun has begun, whatever becomes of the transaction.
    while (!stopping && attempts.length === 0 && claims.length > 0) {
      try {
        if (db.dialect === 'sqlite') begin(await loadSendables({ dialect: db.dialect, sql: db.read }, ids))
        else await transaction(db, async (trx) => begin(await loadSendables(trx, ids)))
      } catch (error) {
        log.warn({ err: error }, 'deliveries could not be loaded, and will be tried again')
        if (attempts.length === 0) await delay(RETRY_MS)
      }
    }
    await Promise.all(attempts)
  }

  async function makeAttempt(claim: Claim, delivery: Sendable | undefined): Promise<void> {
    const { planned } = claim
    const orderingKey = delivery?.orderingKey ?? null
    if (delivery?.attempts !== planned.number - 1 || delivery.nextAttemptAt !== planned.dueAt) return onSettled({ claim })
    const { webhook } = delivery
    if (!webhook.enabled) {
      const notMade = webhook.deleted ? 'webhook_deleted' : 'webhook_disabled'
      return onSettled({ claim, settlement: { planned, orderingKey, result: { notMade }, endedAt: now().getTime() } })
    }
    const result = await sendOne(delivery)
    const attempt: MadeAttempt = { trigger: delivery.trigger, ...result }
    outcomes[attempt.outcome]++
    if (result.outcome === 'timeout') timeoutsInARow.set(webhook.id, (timeoutsInARow.get(webhook.id) ?? 0) + 1)
    else timeoutsInARow.delete(webhook.id)
    const known = webhooks.get(webhook.id)
    if (known && result.status !== null && result.durationMs <= QUICK_MS) known.quickAt = performance.now()
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
    onSettled({ claim, settlement: { planned, orderingKey, result: { attempt }, endedAt: now().getTime() } })
  }

  async function sendOne(delivery: Sendable): Promise<SendResult> {
    const { webhook, body } = delivery
    try {
      const headers = deliveryHeaders(openSecret(webhook.id, webhook.sealedSecret), delivery.id, body, now())
      return await send(agent, { url: webhook.url, headers, body, timeoutMs })
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error
      const nothing = { status: null, responseHeaders: null, responseBody: null, address: null, phases: null, retryAfterAt: null }
      const unsent = { ...nothing, startedAt: now().getTime(), durationMs: 0 }
      return { ...unsent, outcome: 'blocked', error: 'Nothing was sent: the signing secret cannot be read. Was SECRET_KEY changed?' }
    }
  }

  function touch(): void {
    const before = performance.now() - TOUCH_MS
    const old = [...held.values()].filter(({ touchedAt }) => touchedAt <= before)
    for (const each of old) each.touchedAt = performance.now()
    queue.touch(old.map(({ claim }) => claim)).catch((error: unknown) => log.warn({ err: error }, 'claims could not be renewed'))
  }

  return {
    wake: loop.wake,
    tierOf,
    free(settled) {
      // On PostgreSQL other processes may hold the rest of a share, so any place may be the one that was missing.
      let shareFreed = db.dialect === 'postgres'
      for (const { claim } of settled) {
        if (!held.delete(claim.jobId)) continue
        const { webhookId } = claim.planned
        const known = webhooks.get(webhookId)
        if (!known) continue
        shareFreed ||= known.held >= SHARE || claim.tier === 'slow'
        known.held--
        if (known.held === 0) webhooks.delete(webhookId)
      }
      if (shareFreed || (waitingForPlaces && PLACES - held.size >= CLAIM_AT)) loop.wake()
    },
    counts: () => ({ claimed: held.size, sending: sending.size, outcomes: { ...outcomes } }),
    async drain(graceMs) {
      stopping = true
      clearInterval(poll)
      await loop.stop()
      const grace = new AbortController()
      await Promise.race([Promise.all(sending), delay(graceMs, undefined, { signal: grace.signal }).catch(() => undefined)])
      grace.abort()
    },
    async stop() {
      clearInterval(touching)
      const left = [...held.values()].map(({ claim }) => claim)
      await queue.release(left).catch((error: unknown) => log.warn({ err: error }, 'claims could not be given back'))
    },
  }
}
