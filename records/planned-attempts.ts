/** Planned attempts, from the plan to the result, over all accounts: what the delivery engine asks for. The rows are the truth, and whatever
 *  the queue holds can be made again from them. */
import { type Db, given, type Sql, type Trx, transaction } from './db.ts'
import type { Attempt, DeliveryState, FailureReason, Trigger } from './deliveries.ts'

/** One planned attempt. Number and due time together tell it from every other that the delivery had or will have. */
export interface PlannedAttempt {
  deliveryId: string
  webhookId: string
  number: number
  dueAt: number
}

interface PlannedRow {
  id: string
  webhook_id: string
  attempts: number
  next_attempt_at: number
}

const plannedFromRow = (row: PlannedRow): PlannedAttempt => ({
  deliveryId: row.id,
  webhookId: row.webhook_id,
  number: row.attempts + 1,
  dueAt: row.next_attempt_at,
})

/** Ids of what a list of planned attempts is not to hold. */
export interface LeftOut {
  webhooks?: string[]
  deliveries?: string[]
}

/** Attempts due up to `dueUntil` that the records do not know to be in the queue, earliest first. */
export async function listUnqueued(db: Db, dueUntil: Date, leftOut: LeftOut, limit: number): Promise<PlannedAttempt[]> {
  const query = db
    .read('deliveries')
    .whereNull('queued_at')
    .where('next_attempt_at', '<=', dueUntil.getTime())
    .orderBy(['next_attempt_at', 'id'])
    .limit(limit)
    .select('id', 'webhook_id', 'attempts', 'next_attempt_at')
  const { webhooks = [], deliveries = [] } = leftOut
  if (webhooks.length > 0) query.whereRaw(noneOf(db.dialect, 'webhook_id'), [asList(db.dialect, webhooks)])
  if (deliveries.length > 0) query.whereRaw(noneOf(db.dialect, 'id'), [asList(db.dialect, deliveries)])
  const rows: PlannedRow[] = await query
  return rows.map(plannedFromRow)
}

/** A condition of one parameter, however many ids. */
const noneOf = (dialect: Db['dialect'], column: string): string =>
  dialect === 'postgres' ? `${column} <> all (?::uuid[])` : `${column} not in (select value from json_each(?))`
const asList = (dialect: Db['dialect'], ids: string[]): string => (dialect === 'postgres' ? `{${ids.join(',')}}` : JSON.stringify(ids))

/** Attempts overdue at `overdueAt` that were given to the queue at or before `queuedUntil`: their jobs may have been lost. */
export async function listOverdueQueued(db: Db, overdueAt: Date, queuedUntil: Date, limit: number): Promise<PlannedAttempt[]> {
  const rows: PlannedRow[] = await db
    .read('deliveries')
    .where('next_attempt_at', '<=', overdueAt.getTime())
    .where('queued_at', '<=', queuedUntil.getTime())
    .orderBy('next_attempt_at')
    .limit(limit)
    .select('id', 'webhook_id', 'attempts', 'next_attempt_at')
  return rows.map(plannedFromRow)
}

/** Notes that the queue has these, unless one has been made or replaced since, or is at this moment. */
export async function markQueued({ dialect, sql }: Trx, planned: PlannedAttempt[], now: Date): Promise<void> {
  const columns = { deliveryId: 'uuid', number: 'integer', dueAt: 'bigint' }
  const isPostgres = dialect === 'postgres'
  // After a crash of the database they are queued again: no need to wait for the disk.
  if (isPostgres) await sql.raw('set local synchronous_commit = off')
  // Waiting for rows in another order than those who settle them would be a deadlock.
  await sql.raw(
    `update deliveries set queued_at = ? where id in (
       select deliveries.id from ${given(dialect, columns)} join deliveries
       on deliveries.id = given."deliveryId" and attempts = given.number - 1 and next_attempt_at = given."dueAt"
       ${isPostgres ? 'for update of deliveries skip locked' : ''})`,
    [now.getTime(), JSON.stringify(planned)],
  )
}

/** Forgets what the queue had: it is empty after a start of the embedded database. */
export async function markNoneQueued(db: Db): Promise<void> {
  await db.write('deliveries').whereNotNull('queued_at').whereNotNull('next_attempt_at').update({ queued_at: null })
}

/** When the next attempt after `now` is planned, of those the queue has. */
export async function findNextQueuedDueAt(db: Db, now: Date): Promise<number | undefined> {
  const row: { next_attempt_at: number } | undefined = await db
    .read('deliveries')
    .whereNotNull('queued_at')
    .where('next_attempt_at', '>', now.getTime())
    .orderBy('next_attempt_at')
    .first('next_attempt_at')
  return row?.next_attempt_at
}

/** How many due attempts the queue has of each webhook, as far as the records know. */
export async function countQueued(db: Db, now: Date): Promise<Map<string, number>> {
  // Materialised, or SQLite walks a whole index to group by it.
  const due = db.read('deliveries').whereNotNull('queued_at').where('next_attempt_at', '<=', now.getTime()).select('webhook_id')
  const rows = (await db.read
    .withMaterialized('due', due)
    .from('due')
    .groupBy('webhook_id')
    .select('webhook_id')
    .count({ count: '*' })) as {
    webhook_id: string
    count: number
  }[]
  return new Map(rows.map((row) => [row.webhook_id, Number(row.count)]))
}

/** When the attempt that has waited longest was due. Undefined: none is planned. */
export async function findOldestDueAt(db: Db): Promise<number | undefined> {
  // Two seeks, one in each partial index.
  const oldest = async (queued: boolean): Promise<number | undefined> => {
    const query = db.read('deliveries').whereNotNull('next_attempt_at').orderBy('next_attempt_at')
    const row: { next_attempt_at: number } | undefined = await (queued
      ? query.whereNotNull('queued_at')
      : query.whereNull('queued_at')
    ).first('next_attempt_at')
    return row?.next_attempt_at
  }
  const times = (await Promise.all([oldest(true), oldest(false)])).filter((time) => time !== undefined)
  return times.length > 0 ? Math.min(...times) : undefined
}

/** All that one attempt needs. */
export interface Sendable {
  id: string
  attempts: number
  nextAttemptAt: number | null
  trigger: Trigger
  body: Buffer
  /** What it is ordered by, when its webhook wants one after the other. */
  orderingKey: string | null
  webhook: { id: string; url: string; sealedSecret: string; enabled: boolean; deleted: boolean }
}

/** On PostgreSQL no webhook of theirs can be changed before the transaction ends: a send that has begun by then began before the change. */
export async function loadSendables({ dialect, sql }: { dialect: Db['dialect']; sql: Sql }, ids: string[]): Promise<Map<string, Sendable>> {
  const query = sql('deliveries')
    .join('webhooks', 'webhooks.id', 'deliveries.webhook_id')
    .whereIn('deliveries.id', ids)
    .select(
      'deliveries.id',
      'attempts',
      'next_attempt_at',
      'next_trigger',
      'body',
      'ordering_key',
      'webhook_id',
      'url',
      'secret_encrypted',
      'enabled',
      'deleted_at',
    )
  const rows: {
    id: string
    attempts: number
    next_attempt_at: number | null
    next_trigger: Trigger | null
    body: Buffer
    ordering_key: string | null
    webhook_id: string
    url: string
    secret_encrypted: string
    enabled: boolean | number
    deleted_at: number | null
  }[] = await (dialect === 'postgres' ? query.forShare('webhooks') : query)
  return new Map(
    rows.map((row) => [
      row.id,
      {
        id: row.id,
        attempts: row.attempts,
        nextAttemptAt: row.next_attempt_at,
        trigger: row.next_trigger ?? 'schedule',
        body: row.body,
        orderingKey: row.ordering_key,
        webhook: {
          id: row.webhook_id,
          url: row.url,
          sealedSecret: row.secret_encrypted,
          enabled: Boolean(row.enabled),
          deleted: row.deleted_at !== null,
        },
      },
    ]),
  )
}

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
 *  becomes of them. A result whose number was stored before, by whoever else made the same attempt, changes nothing. Returns what became of
 *  those that were stored. */
export async function settle(
  trx: Trx,
  settlements: Settlement[],
  afterSuccess: DeliveryPlan,
  decide: (current: SettlingDelivery, settlement: Settlement) => DeliveryPlan,
): Promise<DeliveryPlan[]> {
  const successes = settlements.flatMap(({ planned, result, endedAt }) =>
    'attempt' in result && result.attempt.outcome === 'success' ? [{ planned, attempt: result.attempt, endedAt }] : [],
  )
  const others = settlements.filter(({ result }) => !('attempt' in result) || result.attempt.outcome !== 'success')
  const stored = successes.length > 0 ? await settleSuccesses(trx, successes, afterSuccess) : 0
  const plans = others.length > 0 ? await settleOthers(trx, others, decide) : []
  const ordered = settlements.filter(({ orderingKey }) => orderingKey !== null)
  if (ordered.length > 0) await planNextInOrder(trx, ordered)
  return [...Array<DeliveryPlan>(stored).fill(afterSuccess), ...plans]
}

/** Plans what has waited for deliveries that have ended. */
async function planNextInOrder(trx: Trx, settlements: Settlement[]): Promise<void> {
  const keys = settlements.map(({ planned, orderingKey }) => ({ webhook_id: planned.webhookId, ordering_key: orderingKey }))
  const at = Math.max(...settlements.map(({ endedAt }) => endedAt))
  const { dialect, sql } = trx
  const result = await sql.raw(
    `update deliveries set next_attempt_at = ?, queued_at = null
     where state = 'pending' and next_attempt_at is null and id in (
       select (select first.id from deliveries as first where first.webhook_id = given.webhook_id and first.ordering_key = given.ordering_key
               and first.state in ('pending', 'retrying') order by first.id limit 1)
       from ${given(dialect, { webhook_id: 'uuid', ordering_key: 'uuid' })})
     returning id`,
    [at, JSON.stringify(keys)],
  )
  if ((dialect === 'postgres' ? result.rows : result).length > 0) trx.markDue('attempts')
}

/** Plans deliveries that wait for others which have ended in another way, such as by hand. */
export async function planStuckInOrder(db: Db, now: Date, limit: number): Promise<void> {
  await transaction(db, async (trx) => {
    const stuck = trx
      .sql('deliveries')
      .whereNotNull('ordering_key')
      .where({ state: 'pending' })
      .whereNull('next_attempt_at')
      .whereNotExists(
        trx
          .sql('deliveries as earlier')
          .select('earlier.id')
          .whereRaw('earlier.webhook_id = deliveries.webhook_id and earlier.ordering_key = deliveries.ordering_key')
          .whereNotNull('earlier.ordering_key')
          .whereIn('earlier.state', ['pending', 'retrying'])
          .whereRaw('earlier.id < deliveries.id'),
      )
      .limit(limit)
      .select('deliveries.id')
    const planned = await trx.sql('deliveries').whereIn('id', stuck).update({ next_attempt_at: now.getTime(), queued_at: null })
    if (planned > 0) trx.markDue('attempts')
  })
}

interface Success {
  planned: PlannedAttempt
  attempt: MadeAttempt
  endedAt: number
}

/** Nearly all results are successes, and what becomes of those does not hang on what is there: no row needs to be read first. */
async function settleSuccesses(trx: Trx, successes: Success[], plan: DeliveryPlan): Promise<number> {
  const { dialect, sql } = trx
  // In one order everywhere, so that two transactions never wait for each other.
  const rows = successes
    .map(({ planned, attempt, endedAt }) => ({ ...attemptToRow(planned, attempt), ended_at: endedAt }))
    .sort((a, b) => (a.delivery_id < b.delivery_id ? -1 : 1))
  const source = given(dialect, { ...ATTEMPT_COLUMNS, ended_at: 'bigint' })
  const update = (from: string): string => `update deliveries
    set state = ?, failure_reason = ?, next_attempt_at = ?, next_trigger = ?, attempts = given.number, updated_at = given.ended_at, queued_at = null
    from ${from} where deliveries.id = given.delivery_id and deliveries.attempts = given.number - 1
    returning deliveries.id, deliveries.account_id`
  const changed = [plan.state, plan.failureReason, plan.nextAttemptAt, plan.nextTrigger]
  const text = JSON.stringify(rows)
  if (dialect === 'postgres') {
    const columns = ATTEMPT_FIELDS.join(', ')
    const { rowCount } = await sql.raw(
      `with given as (select * from ${source}), stored as (${update('given')})
       insert into attempts (account_id, ${columns}) select stored.account_id, ${columns} from given join stored on stored.id = given.delivery_id
       on conflict (delivery_id, number) do nothing`,
      [text, ...changed],
    )
    return rowCount
  }
  const stored: { id: string; account_id: string }[] = await sql.raw(update(source), [...changed, text])
  const accounts = new Map(stored.map(({ id, account_id }) => [id, account_id]))
  const made = rows.flatMap((row) => (accounts.has(row.delivery_id) ? [{ ...row, account_id: accounts.get(row.delivery_id) }] : []))
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
    if (delivery?.attempts !== planned.number - 1) continue
    // One result an attempt number, also within a batch.
    delivery.attempts = planned.number
    const made = 'attempt' in result
    if (made) attempts.push({ ...attemptToRow(planned, result.attempt), account_id: delivery.accountId })
    const plan = decide(delivery, settlement)
    plans.push(plan)
    changes.push({
      id: delivery.id,
      state: plan.state,
      failure_reason: plan.failureReason,
      next_attempt_at: plan.nextAttemptAt,
      next_trigger: plan.nextTrigger,
      attempts: made ? planned.number : planned.number - 1,
      updated_at: endedAt,
    })
  }
  await insertAttempts(trx, attempts)
  if (changes.length > 0) {
    const changed = Object.keys(PLAN_COLUMNS).filter((column) => column !== 'id')
    await trx.sql.raw(
      `update deliveries set ${changed.map((column) => `${column} = given.${column}`).join(', ')}, queued_at = null
       from ${given(trx.dialect, PLAN_COLUMNS)} where deliveries.id = given.id`,
      [JSON.stringify(changes)],
    )
  }
  return plans
}

async function insertAttempts({ dialect, sql }: Trx, attempts: Record<string, unknown>[]): Promise<void> {
  if (attempts.length === 0) return
  const columns = ['account_id', ...ATTEMPT_FIELDS].join(', ')
  await sql.raw(
    `insert into attempts (${columns}) select ${columns} from ${given(dialect, { account_id: 'uuid', ...ATTEMPT_COLUMNS })} where true
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
    response_headers: attempt.responseHeaders === null ? null : JSON.stringify(attempt.responseHeaders),
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
  const rows: SettlingRow[] = await (trx.dialect === 'postgres' ? query.forUpdate('deliveries') : query)
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
