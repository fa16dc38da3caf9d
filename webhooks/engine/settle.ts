/** Stores the results of attempts, many in one transaction. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isUnavailable } from '../../records/database/errors.ts'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import {
  type DeliveryPlan,
  hasSucceeded,
  type Settlement,
  settle,
} from '../../records/settlements.ts'
import { AFTER_SUCCESS, afterAttempt, withoutAttempt } from '../policy/schedule.ts'
import type { Claim, Queue } from '../queue/queue.ts'
import { wakeable } from './wakeable.ts'

/** A claim and what came of it. Without a settlement there was nothing to do: the delivery no longer wants this attempt. */
export interface Settled {
  claim: Claim
  settlement?: Settlement
}

export interface Settler {
  add(settled: Settled): void
  /** Stores what is left, as long as the deadline allows. */
  stop(graceMs: number): Promise<void>
}

export interface SettlerOptions {
  db: Db
  queue: Queue
  delaysMs: number[]
  log: Logger
  /** Called when results are stored: with what became of the deliveries. */
  onStored: (settled: Settled[], plans: DeliveryPlan[]) => void
}

/** A result waits at most this long for others, unless there are so many already. */
const GATHER_MS = 10
const GATHER = 256
/** Never more in one transaction. */
const BATCH = 512
/** At once. SQLite has one writer. */
const TRANSACTIONS = { postgres: 2, sqlite: 1 }
const RETRY_MS = 500

export function startSettler({ db, queue, delaysMs, log, onStored }: SettlerOptions): Settler {
  let gathered: Settled[] = []
  let timer: NodeJS.Timeout | undefined
  const storing = new Set<Promise<void>>()
  const droppings = new Set<Promise<void>>()
  const giveUp = new AbortController()

  const loop = wakeable(
    async () => {
      clearTimeout(timer)
      timer = undefined
      while (gathered.length > 0 && !giveUp.signal.aborted) {
        if (storing.size >= TRANSACTIONS[db.dialect]) await Promise.race(storing)
        const batch = gathered.slice(0, BATCH)
        gathered = gathered.slice(BATCH)
        const work = store(batch).finally(() => storing.delete(work))
        storing.add(work)
      }
    },
    (error) => log.error({ err: error }, 'results of attempts could not be stored'),
  )

  /** Tries until it works: what is not stored would be sent again. */
  async function store(batch: Settled[]): Promise<void> {
    while (!giveUp.signal.aborted) {
      try {
        return await storeOnce(batch)
      } catch (error) {
        log.warn(
          { err: error, attempts: batch.length },
          'results of attempts could not be stored, and will be tried again',
        )
        // One result that the database does not take must not hold up the others.
        if (!isUnavailable(error) && batch.length > 1) {
          for (const settled of batch) await store([settled])
          return
        }
        if (!isUnavailable(error)) {
          for (const settled of batch) setTimeout(() => add(withoutResponse(settled)), RETRY_MS)
          return
        }
        await delay(RETRY_MS, undefined, { signal: giveUp.signal }).catch(() => undefined)
      }
    }
  }

  async function storeOnce(batch: Settled[]): Promise<void> {
    const claims = batch.map(({ claim }) => claim)
    const decide: Parameters<typeof settle>[3] = (delivery, settlement) =>
      planAfter(delivery, settlement, delaysMs)
    if (db.dialect === 'postgres') {
      const plans = await transaction(db, async (trx) => {
        const dropped = await queue.drop(claims, trx)
        // A process that stood still has lost its claims: whoever makes these attempts now says how they failed, if they do.
        const counting = batch.flatMap(({ claim, settlement }) =>
          settlement && (dropped.has(claim.jobId) || hasSucceeded(settlement)) ? [settlement] : [],
        )
        return counting.length > 0 ? await settle(trx, counting, AFTER_SUCCESS, decide) : []
      })
      onStored(batch, plans)
      return
    }
    const settlements = batch.flatMap(({ settlement }) => settlement ?? [])
    const plans =
      settlements.length > 0
        ? await transaction(db, (trx) => settle(trx, settlements, AFTER_SUCCESS, decide))
        : []
    // The records have it, and the next batch need not wait for the queue. A job that stays behind is found to be stale when it is claimed.
    const dropping = queue
      .drop(claims)
      .catch((error: unknown) =>
        log.error({ err: error }, 'settled attempts could not be taken off the queue'),
      )
      .then(() => onStored(batch, plans))
      .finally(() => droppings.delete(dropping))
    droppings.add(dropping)
  }

  function add(settled: Settled): void {
    gathered.push(settled)
    if (gathered.length >= GATHER) loop.wake()
    else timer ??= setTimeout(loop.wake, GATHER_MS)
  }

  return {
    add,
    async stop(graceMs) {
      const deadline = setTimeout(() => giveUp.abort(), graceMs)
      loop.wake()
      await loop.stop()
      if (gathered.length > 0 && !giveUp.signal.aborted) await store(gathered)
      await Promise.all(storing)
      await Promise.all(droppings)
      clearTimeout(deadline)
      clearTimeout(timer)
    },
  }
}

function planAfter(
  delivery: Parameters<typeof afterAttempt>[0],
  settlement: Settlement,
  delaysMs: number[],
): DeliveryPlan {
  const { planned, result, endedAt } = settlement
  if ('notMade' in result) return withoutAttempt(delivery, planned.dueAt, result.notMade)
  const { trigger, outcome, retryAfterAt } = result.attempt
  return afterAttempt(
    delivery,
    {
      number: planned.number,
      trigger,
      dueAt: planned.dueAt,
      succeeded: outcome === 'success',
      endedAt,
      retryAfterAt,
    },
    delaysMs,
  )
}

/** The outcome alone, for when the database refuses something of the response. */
function withoutResponse({ claim, settlement }: Settled): Settled {
  if (!settlement || 'notMade' in settlement.result) return { claim, settlement }
  const attempt = {
    ...settlement.result.attempt,
    responseHeaders: null,
    responseBody: null,
    error: null,
  }
  return { claim, settlement: { ...settlement, result: { attempt } } }
}
