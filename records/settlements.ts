/** Results of attempts, stored: what was made, and what becomes of its delivery. Over all accounts. */

import type { Attempt } from './attempts.ts'
import { jsonRows } from './database/statements.ts'
import type { Trx } from './database/transaction.ts'
import type { DeliveryState, FailureReason, Trigger } from './deliveries.ts'
import { ATTEMPTS_SCHEDULED, type PlannedAttempt } from './due-work.ts'

export interface MadeAttempt extends Omit<Attempt, 'deliveryId' | 'number'> {
  /** When the endpoint asked to be tried again, in epoch milliseconds. */
  retryAfterAt: number | null
}

/** An attempt that ended, or one that was not made because its webhook is gone. */
export interface Settlement {
  planned: PlannedAttempt
  orderingKey: string | null
  result: { attempt: MadeAttempt } | { notMade: 'webhook_disabled' | 'webhook_deleted' }
  endedAt: number
}

/** A delivery as it is now, locked, while the result of its attempt is stored. */
export interface SettlingDelivery {
  id: string
  accountId: string
  state: DeliveryState
  failureReason: FailureReason | null
  attempts: number
  nextAttemptAt: number | null
  nextTrigger: Trigger | null
  webhook: { enabled: boolean; deleted: boolean }
}

/** What becomes of it. */
export interface DeliveryPlan {
  state: DeliveryState
  failureReason: FailureReason | null
  nextAttemptAt: number | null
  nextTrigger: Trigger | null
}

/** Stores results, in the caller's transaction. A success makes a delivery `afterSuccess`, whatever it was; of the others `decide` says what
 *  becomes of them. A result that was stored before, by whoever else made the same attempt, changes nothing; the others get their number here.
 *  Returns what became of those that were stored. */
export async function settle(
  trx: Trx,
  settlements: Settlement[],
  afterSuccess: DeliveryPlan,
  decide: (current: SettlingDelivery, settlement: Settlement) => DeliveryPlan,
): Promise<DeliveryPlan[]> {
  const successes = settlements.filter(hasSucceeded)
  const others = settlements.filter((settlement) => !hasSucceeded(settlement))
  const stored = successes.length > 0 ? await settleSuccesses(trx, successes, afterSuccess) : 0
  const plans = others.length > 0 ? await settleOthers(trx, others, decide) : []
  const ordered = settlements.filter(({ orderingKey }) => orderingKey !== null)
  if (ordered.length > 0) await planNextInOrder(trx, ordered)
  return [...Array<DeliveryPlan>(stored).fill(afterSuccess), ...plans]
}

/** Plans what has waited for deliveries that have ended. */
async function planNextInOrder(trx: Trx, settlements: Settlement[]): Promise<void> {
  const keys = settlements.map(({ planned, orderingKey }) => ({
    webhook_id: planned.webhookId,
    ordering_key: orderingKey,
  }))
  const at = Math.max(...settlements.map(({ endedAt }) => endedAt))
  const { dialect, sql } = trx
  const result = await sql.raw(
    `update deliveries set next_attempt_at = ?, queued_at = null
     where state = 'pending' and next_attempt_at is null and id in (
       select (select first.id from deliveries as first where first.webhook_id = input.webhook_id and first.ordering_key = input.ordering_key
               and first.state in ('pending', 'retrying')
               order by first.next_attempt_at is null, first.id limit 1)
       from ${jsonRows(dialect, { webhook_id: 'uuid', ordering_key: 'uuid' })})
     returning id`,
    [at, JSON.stringify(keys)],
  )
  if ((dialect === 'postgres' ? result.rows : result).length > 0) trx.announce(ATTEMPTS_SCHEDULED)
}

interface Success extends Settlement {
  result: { attempt: MadeAttempt }
}

export function hasSucceeded(settlement: Settlement): settlement is Success {
  return 'attempt' in settlement.result && settlement.result.attempt.outcome === 'success'
}

/** The attempt that is planned, or one whose plan was withdrawn while it was under way and that nothing came after. */
const IS_NEW =
  '(deliveries.next_attempt_at = input.due_at or deliveries.attempts = input.number - 1)'

/** Nearly all results are successes, and what becomes of those does not hang on what is there: no row needs to be read first. */
async function settleSuccesses(
  trx: Trx,
  successes: Success[],
  plan: DeliveryPlan,
): Promise<number> {
  const { dialect, sql } = trx
  // In one order everywhere, so that two transactions never wait for each other.
  const rows = successes
    .map(({ planned, result, endedAt }) => ({
      ...attemptToRow(planned, result.attempt),
      ended_at: endedAt,
      due_at: planned.dueAt,
    }))
    .sort((a, b) => (a.delivery_id < b.delivery_id ? -1 : 1))
  const source = jsonRows(dialect, { ...ATTEMPT_COLUMNS, ended_at: 'bigint', due_at: 'bigint' })
  const update = (from: string): string => `update deliveries
    set state = ?, failure_reason = ?, next_attempt_at = ?, next_trigger = ?, attempts = deliveries.attempts + 1, updated_at = input.ended_at, queued_at = null
    from ${from} where deliveries.id = input.delivery_id and ${IS_NEW}
    returning deliveries.id, deliveries.account_id, deliveries.attempts`
  const changed = [plan.state, plan.failureReason, plan.nextAttemptAt, plan.nextTrigger]
  const text = JSON.stringify(rows)
  if (dialect === 'postgres') {
    const columns = ATTEMPT_FIELDS.filter((name) => name !== 'number').join(', ')
    const { rowCount } = await sql.raw(
      `with input as (select * from ${source}), stored as (${update('input')})
       insert into attempts (account_id, number, ${columns})
       select stored.account_id, stored.attempts, ${columns} from input join stored on stored.id = input.delivery_id
       on conflict (delivery_id, number) do nothing`,
      [text, ...changed],
    )
    return rowCount
  }
  const stored: { id: string; account_id: string; attempts: number }[] = await sql.raw(
    update(source),
    [...changed, text],
  )
  const found = new Map(stored.map((row) => [row.id, row]))
  const made = rows.flatMap((row) => {
    const delivery = found.get(row.delivery_id)
    return delivery ? [{ ...row, account_id: delivery.account_id, number: delivery.attempts }] : []
  })
  await insertAttempts(trx, made)
  return stored.length
}

async function settleOthers(
  trx: Trx,
  settlements: Settlement[],
  decide: (current: SettlingDelivery, settlement: Settlement) => DeliveryPlan,
): Promise<DeliveryPlan[]> {
  const current = await lockForSettling(
    trx,
    settlements.map(({ planned }) => planned.deliveryId),
  )
  const attempts: Record<string, unknown>[] = []
  const plans: DeliveryPlan[] = []
  const changes: Record<string, unknown>[] = []
  for (const settlement of settlements) {
    const { planned, result, endedAt } = settlement
    const delivery = current.get(planned.deliveryId)
    // As IS_NEW.
    if (
      !delivery ||
      (delivery.nextAttemptAt !== planned.dueAt && delivery.attempts !== planned.number - 1)
    )
      continue
    const made = 'attempt' in result
    const number = made ? delivery.attempts + 1 : delivery.attempts
    if (made)
      attempts.push({
        ...attemptToRow(planned, result.attempt),
        account_id: delivery.accountId,
        number,
      })
    const plan = decide(delivery, settlement)
    // The same attempt may be in a batch twice.
    Object.assign(delivery, plan, { attempts: number })
    plans.push(plan)
    changes.push({
      id: delivery.id,
      state: plan.state,
      failure_reason: plan.failureReason,
      next_attempt_at: plan.nextAttemptAt,
      next_trigger: plan.nextTrigger,
      attempts: number,
      updated_at: endedAt,
    })
  }
  await insertAttempts(trx, attempts)
  if (changes.length > 0) {
    const changed = Object.keys(PLAN_COLUMNS).filter((column) => column !== 'id')
    await trx.sql.raw(
      `update deliveries set ${changed.map((column) => `${column} = input.${column}`).join(', ')},
         queued_at = case when deliveries.next_attempt_at = input.next_attempt_at then queued_at end
       from ${jsonRows(trx.dialect, PLAN_COLUMNS)} where deliveries.id = input.id`,
      [JSON.stringify(changes)],
    )
  }
  return plans
}

async function insertAttempts(
  { dialect, sql }: Trx,
  attempts: Record<string, unknown>[],
): Promise<void> {
  if (attempts.length === 0) return
  const columns = ['account_id', ...ATTEMPT_FIELDS].join(', ')
  await sql.raw(
    `insert into attempts (${columns}) select ${columns} from ${jsonRows(dialect, { account_id: 'uuid', ...ATTEMPT_COLUMNS })} where true
     on conflict (delivery_id, number) do nothing`,
    [JSON.stringify(attempts)],
  )
}

const ATTEMPT_COLUMNS = {
  delivery_id: 'uuid',
  number: 'integer',
  trigger: 'text',
  started_at: 'bigint',
  duration_ms: 'integer',
  outcome: 'text',
  status: 'integer',
  response_headers: 'text',
  response_body: 'text',
  error: 'text',
  address: 'text',
  phases: 'text',
}
const ATTEMPT_FIELDS = Object.keys(ATTEMPT_COLUMNS)

const PLAN_COLUMNS = {
  id: 'uuid',
  state: 'text',
  failure_reason: 'text',
  next_attempt_at: 'bigint',
  next_trigger: 'text',
  attempts: 'integer',
  updated_at: 'bigint',
}

function attemptToRow(planned: PlannedAttempt, attempt: MadeAttempt) {
  return {
    delivery_id: planned.deliveryId,
    number: planned.number,
    trigger: attempt.trigger,
    started_at: attempt.startedAt,
    duration_ms: attempt.durationMs,
    outcome: attempt.outcome,
    status: attempt.status,
    response_headers:
      attempt.responseHeaders === null ? null : JSON.stringify(attempt.responseHeaders),
    response_body: attempt.responseBody,
    error: attempt.error,
    address: attempt.address,
    phases: attempt.phases === null ? null : JSON.stringify(attempt.phases),
  }
}

interface SettlingRow {
  id: string
  account_id: string
  state: DeliveryState
  failure_reason: FailureReason | null
  attempts: number
  next_attempt_at: number | null
  next_trigger: Trigger | null
  enabled: boolean | number
  deleted_at: number | null
}

async function lockForSettling(trx: Trx, ids: string[]): Promise<Map<string, SettlingDelivery>> {
  const query = trx
    .sql('deliveries')
    .join('webhooks', 'webhooks.id', 'deliveries.webhook_id')
    .whereIn('deliveries.id', ids)
    // In one order everywhere, so that two transactions never wait for each other.
    .orderBy('deliveries.id')
    .select(
      'deliveries.id',
      'deliveries.account_id',
      'state',
      'failure_reason',
      'attempts',
      'next_attempt_at',
      'next_trigger',
      'enabled',
      'deleted_at',
    )
  const rows: SettlingRow[] = await (trx.dialect === 'postgres'
    ? query.forUpdate('deliveries')
    : query)
  return new Map(
    rows.map((row) => [
      row.id,
      {
        id: row.id,
        accountId: row.account_id,
        state: row.state,
        failureReason: row.failure_reason,
        attempts: row.attempts,
        nextAttemptAt: row.next_attempt_at,
        nextTrigger: row.next_trigger,
        webhook: { enabled: Boolean(row.enabled), deleted: row.deleted_at !== null },
      },
    ]),
  )
}
