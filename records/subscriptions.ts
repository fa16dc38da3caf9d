import { eventTypes, operationalTypes } from '../generated/events.ts'
import { type Sql, select } from './database/statements.ts'
import type { Source } from './database/transaction.ts'
import { type KeyedRequest, type KeyRow, type KeyState, keyStateOf } from './idempotency-keys.ts'

/** `by_resource`: the events of one record are delivered one after the other. A failing delivery
 *  delays only later ones of the same record. */
export const orderings = ['none', 'by_resource'] as const
export type Ordering = (typeof orderings)[number]

/** `slack`: messages for a Slack-compatible incoming webhook. */
export type WebhookFormat = 'event' | 'slack'

/** Subscribed to by name alone: `*` does not include it. */
export const isOperational = (type: string): boolean => Object.hasOwn(operationalTypes, type)

export const isEventType = (type: string): boolean =>
  Object.hasOwn(eventTypes, type) || isOperational(type)

/** Without repetitions, and without the types that `*` includes. */
export function simplifyEventTypes(types: string[]): string[] {
  const unique = [...new Set(types)]
  return unique.includes('*') ? ['*', ...unique.filter(isOperational)] : unique
}

/** An enabled webhook, as `emit` (webhooks/emit.ts) needs it. */
export interface Subscription {
  id: string
  /** `['*']`: all types, including future ones. */
  eventTypes: string[]
  format: WebhookFormat
  ordering: Ordering
}

interface SubscriptionRow {
  id: string
  event_types: string
  format: WebhookFormat
  ordering: Ordering
}

const COLUMNS = 'webhooks.id, event_types, format, ordering'
const IS_ENABLED = 'webhooks.account_id = ? and deleted_at is null and enabled'

/** The accounts with an enabled webhook that is subscribed to an operational event. A statement on
 *  all accounts. */
export const NOTIFIED_ACCOUNTS = `
  select account_id from webhooks
  where deleted_at is null and enabled and event_types like '%"muster.%'`

function fromRow(row: SubscriptionRow): Subscription {
  return {
    id: row.id,
    eventTypes: JSON.parse(row.event_types) as string[],
    format: row.format,
    ordering: row.ordering,
  }
}

/** The enabled webhooks. Runs for every emitted event. */
export async function listSubscriptions(sql: Sql, accountId: string): Promise<Subscription[]> {
  const text = `select ${COLUMNS} from webhooks where ${IS_ENABLED}`
  const rows = await select<SubscriptionRow>(sql, text, [accountId], 'list_subscriptions')
  return rows.map(fromRow)
}

/** `findKeyState` and `listSubscriptions` in one statement, because each create with an idempotency
 *  key needs both. */
export async function findKeyAndSubscriptions(
  { sql }: Source,
  request: KeyedRequest,
  now: number,
): Promise<{ key: KeyState; subscriptions: Subscription[] }> {
  // One row for each webhook, or one row without a webhook.
  const rows = await select<Nullable<KeyRow & SubscriptionRow>>(
    sql,
    `select fingerprint, status, headers, body, expires_at, ${COLUMNS} from (select 1) as always
     left join idempotency_keys
       on idempotency_keys.account_id = ? and user_id = ? and key = ?
     left join webhooks on ${IS_ENABLED}`,
    [request.accountId, request.userId, request.key, request.accountId],
    'find_key_and_subscriptions',
  )
  const keyRow = rows.find((row): row is KeyRow & typeof row => row.fingerprint !== null)
  const webhookRows = rows.filter((row): row is SubscriptionRow & typeof row => row.id !== null)
  return {
    key: await keyStateOf(sql, keyRow, request, now),
    subscriptions: webhookRows.map(fromRow),
  }
}

type Nullable<Row> = { [Column in keyof Row]: Row[Column] | null }
