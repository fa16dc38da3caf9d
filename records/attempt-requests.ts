/** The stored data that a request of an attempt is built from. */
import type { Attempt, Trigger } from './attempt.ts'
import { idIn, runInOrder, select } from './database/statements.ts'
import type { Source } from './database/transaction.ts'
import { WITHOUT_WAIT } from './database/without-wait.ts'
import { ARE_PAUSED } from './delivery-pause.ts'

export interface AttemptWebhook {
  id: string
  url: string
  /** The whole URL of a Slack channel, encrypted. Then `url` is without the path. */
  sealedUrl: string | null
  /** With the port. */
  host: string
  sealedSecret: string
  /** The headers that users added: encrypted values by name. */
  sealedHeaders: Record<string, string>
  enabled: boolean
  deleted: boolean
  /** The account is suspended. */
  suspended: boolean
  /** All deliveries are paused. */
  paused: boolean
}

export interface AttemptRequest {
  deliveryId: string
  /** Null for an event that is not stored. */
  eventId: string | null
  eventType: string
  nextAttemptAt: number | null
  trigger: Trigger
  body: Buffer
  /** Null: the webhook does not ask for order. */
  orderingKey: string | null
  /** The trace of the request that caused the event. */
  traceparent: string | null
  /** Undefined while another transaction changes the webhook. */
  webhook?: AttemptWebhook
}

interface DeliveryRow {
  id: string
  event_id: string | null
  event_type: string
  next_attempt_at: number | null
  next_trigger: Trigger | null
  body: Buffer
  ordering_key: string | null
  traceparent: string | null
  webhook_id: string
}

interface WebhookRow {
  id: string
  url: string
  url_encrypted: string | null
  secret_encrypted: string
  headers_encrypted: string
  enabled: boolean | number
  deleted_at: number | null
  suspended_at: number | null
  paused: boolean | number
}

/** By delivery ID. On PostgreSQL the webhooks stay locked until the transaction ends, so that none
 *  changes before its requests have started. The transaction does not wait for the disk: no
 *  lock outlives a crash. Skips webhooks that another transaction has locked, so that these do not
 *  delay the others. */
export async function loadRequests(
  source: Source,
  attempts: Pick<Attempt, 'accountId' | 'deliveryId' | 'webhookId'>[],
): Promise<Map<string, AttemptRequest>> {
  const { dialect, sql } = source
  const deliveryIds = attempts.map(({ deliveryId }) => deliveryId)
  const webhookIds = new Set(attempts.map(({ webhookId }) => webhookId))
  const accountIds = new Set(attempts.map(({ accountId }) => accountId))
  const isDelivery = idIn(dialect, deliveryIds)
  const isWebhook = idIn(dialect, [...webhookIds])
  const isOwn = idIn(dialect, [...accountIds], 'account_id')
  // A join would return the webhook once for each delivery. The webhooks are read last, so the state
  // of a webhook is never older than the state of its delivery.
  const [rows, webhookRows] = await runInOrder(
    source,
    () =>
      select<DeliveryRow>(
        sql,
        `select id, event_id, event_type, next_attempt_at, next_trigger, body, ordering_key, traceparent,
           webhook_id
         from deliveries where ${isOwn.sql} and ${isDelivery.sql}`,
        [...isOwn.bindings, ...isDelivery.bindings],
        'load_deliveries',
      ),
    () =>
      select<WebhookRow>(
        sql,
        `select id, url, url_encrypted, secret_encrypted, headers_encrypted, enabled, deleted_at, suspended_at,
           ${ARE_PAUSED} as paused${dialect === 'postgres' ? `, ${WITHOUT_WAIT}` : ''}
         from webhooks where ${isOwn.sql} and ${isWebhook.sql}
         ${dialect === 'postgres' ? 'for share skip locked' : ''}`,
        [...isOwn.bindings, ...isWebhook.bindings],
        'load_webhooks',
      ),
  )
  const webhooks = new Map(webhookRows.map((row) => [row.id, webhookFromRow(row)]))
  return new Map(rows.map((row) => [row.id, requestFromRow(row, webhooks.get(row.webhook_id))]))
}

function requestFromRow(row: DeliveryRow, webhook: AttemptWebhook | undefined): AttemptRequest {
  return {
    deliveryId: row.id,
    eventId: row.event_id,
    eventType: row.event_type,
    nextAttemptAt: row.next_attempt_at,
    trigger: row.next_trigger ?? 'schedule',
    body: row.body,
    orderingKey: row.ordering_key,
    traceparent: row.traceparent,
    webhook,
  }
}

function webhookFromRow(row: WebhookRow): AttemptWebhook {
  return {
    id: row.id,
    url: row.url,
    sealedUrl: row.url_encrypted,
    host: hostOf(row.url),
    sealedSecret: row.secret_encrypted,
    sealedHeaders: JSON.parse(row.headers_encrypted),
    enabled: Boolean(row.enabled),
    deleted: row.deleted_at !== null,
    suspended: row.suspended_at !== null,
    paused: Boolean(row.paused),
  }
}

export const hostOf = (url: string): string => URL.parse(url)?.host ?? ''
