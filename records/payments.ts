import { InvalidInput } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import type { Body } from '../generated/operations.ts'
import { assertTransition, nextUpdatedAt, type Transitions } from './changes.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { select } from './database/statements.ts'
import { newId } from './ids.ts'
import {
  filtersOf,
  type Listing,
  matching,
  referred,
  toNullableTimestamp,
  toTimestamp,
} from './list.ts'
import { participantListing } from './participants.ts'
import { assertReference, toExternalIdTaken, withStoredIds } from './references.ts'
import { taskListing } from './tasks.ts'

export type Payment = components['schemas']['Payment']
type NewPayment = Body<'createPayment'>

const TRANSITIONS: Transitions<Payment['status']> = {
  pending: ['paid', 'cancelled'],
  paid: [],
  cancelled: [],
}

interface PaymentRow {
  id: string
  participant_id: string
  task_id: string | null
  amount_minor: number
  currency: Payment['currency']
  status: Payment['status']
  note: string | null
  paid_at: number | null
  external_id: string | null
  created_at: number
  updated_at: number
}

function fromRow(row: PaymentRow): Payment {
  return {
    id: row.id,
    participant_id: row.participant_id,
    task_id: row.task_id,
    amount_minor: row.amount_minor,
    currency: row.currency,
    status: row.status,
    note: row.note,
    paid_at: toNullableTimestamp(row.paid_at),
    external_id: row.external_id,
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
  }
}

export const paymentListing: Listing<PaymentRow, Payment> = {
  table: 'payments',
  fromRow,
  nullable: ['paid_at'],
  includes: {
    participant: referred('participant_id', participantListing),
    task: referred('task_id', taskListing),
  },
}

const toTaken = toExternalIdTaken('payment')

const MAX_COUNTED_PAYMENTS = 100

/** The currencies of the account's payments: those of the newest ones first, by their frequency. */
export async function listUsedCurrencies(scope: Scope): Promise<string[]> {
  const rows: Pick<PaymentRow, 'currency'>[] = await scope
    .rows('payments')
    .select('currency')
    .orderBy('created_at', 'desc')
    .limit(MAX_COUNTED_PAYMENTS)
  const counts = new Map<string, number>()
  for (const { currency } of rows) counts.set(currency, (counts.get(currency) ?? 0) + 1)
  const newest = [...counts].sort(([, one], [, other]) => other - one).map(([currency]) => currency)
  return [...new Set([...newest, ...(await listCurrencies(scope))])]
}

/** Jumps in the index from one currency to the next. `select distinct` would read all payments. */
async function listCurrencies({ accountId, sql }: Scope): Promise<string[]> {
  const rows = await select<Pick<PaymentRow, 'currency'>>(
    sql,
    `with recursive used (currency) as (
       select min(currency) from payments where account_id = ?
       union all
       select (select min(currency) from payments where account_id = ? and currency > used.currency)
       from used where currency is not null)
     select currency from used where currency is not null`,
    [accountId, accountId],
  )
  return rows.map(({ currency }) => currency)
}

/** The exact sum of the listed payments, in minor units, for each currency: the most frequent one first. */
export async function sumPayments(
  scope: Scope,
  query: Record<string, unknown>,
): Promise<{ currency: string; sum: string }[]> {
  const { sql, bindings } = await matching(
    scope,
    paymentListing,
    withStoredIds(filtersOf(query)),
    [],
  )
  // As text, because a sum may exceed the whole numbers that JavaScript represents exactly.
  return select(
    scope.sql,
    `select currency, cast(sum(amount_minor) as text) as sum from payments where ${sql}
     group by currency order by count(*) desc, currency`,
    bindings,
  )
}

/** Throws `InvalidInput` for an unknown participant or task, or an external ID that is taken. */
export async function insertPayment(
  scope: WriteScope,
  payment: NewPayment,
  now: Date,
): Promise<Payment> {
  const { participant_id, task_id = null } = withStoredIds(payment)
  await assertReference(scope, 'participant_id', 'participants', participant_id)
  await assertReference(scope, 'task_id', 'tasks', task_id)
  const row: PaymentRow = {
    id: newId(),
    participant_id,
    task_id,
    amount_minor: payment.amount_minor,
    currency: payment.currency,
    status: 'pending',
    note: payment.note ?? null,
    paid_at: null,
    external_id: payment.external_id ?? null,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  await scope.insert('payments', row, toTaken)
  return fromRow(row)
}

/** Throws `InvalidInput` for a status that cannot follow the current one, a new amount or currency
 *  of a payment that is not pending, an unknown task, or an external ID that is taken. */
export async function updatePaymentFields(
  scope: WriteScope,
  current: Payment,
  changes: Partial<Payment>,
  now: Date,
): Promise<Payment> {
  assertTransition(TRANSITIONS, current.status, changes.status)
  for (const field of ['amount_minor', 'currency'] as const) {
    if (changes[field] !== undefined && current.status !== 'pending')
      throw new InvalidInput({ [field]: [`cannot be changed: the payment is ${current.status}.`] })
  }
  await assertReference(scope, 'task_id', 'tasks', changes.task_id)
  const row = {
    ...changes,
    ...(changes.status === 'paid' && { paid_at: now.getTime() }),
    updated_at: nextUpdatedAt(current, now),
  }
  const update = scope.rows('payments').where({ id: current.id }).update(row).returning('*')
  const [updated] = await update.catch((error: unknown) => {
    throw toTaken(error)
  })
  return fromRow(updated as PaymentRow)
}

export async function deletePaymentRow(scope: WriteScope, id: string): Promise<void> {
  await scope.rows('payments').where({ id }).delete()
}
