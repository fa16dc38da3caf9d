import { domainToUnicode } from 'node:url'
import { Refused } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import { lockAccount } from './accounts.ts'
import type { AuditTarget } from './audit-log.ts'
import { resumeInterruptedJobs } from './bulk-jobs.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { countFound, type Sql } from './database/statements.ts'
import { endUnfinishedDeliveries } from './delivery-commands.ts'
import { newId } from './ids.ts'
import { type Listing, toNullableTimestamp, toTimestamp } from './list.ts'
import { FIXED_DEFAULTS, findQuotas } from './quotas.ts'
import { countNoun, toStoredId } from './references.ts'
import { isOperational, type Ordering, type WebhookFormat } from './subscriptions.ts'
import { endOutage } from './webhook-outages.ts'

export interface Webhook {
  id: string
  accountId: string
  /** Without the path if the format is `slack`. */
  url: string
  description: string
  /** `['*']`: all types, including future ones. */
  eventTypes: string[]
  format: WebhookFormat
  ordering: Ordering
  /** The headers that users added to the requests. */
  headerNames: string[]
  enabled: boolean
  /** When the webhook was last disabled. Stays when the webhook is enabled again. */
  disabledAt: number | null
  /** Since when the account is suspended, which stops all attempts. */
  suspendedAt: number | null
  /** Is there a next secret that does not sign yet? */
  hasNextSecret: boolean
  createdBy: string | null
  /** Epoch milliseconds, like all times of records. */
  createdAt: number
  updatedAt: number
}

export interface WebhookRow {
  id: string
  account_id: string
  url: string
  description: string
  event_types: string
  format: WebhookFormat
  ordering: Ordering
  enabled: boolean | number
  disabled_at: number | null
  suspended_at: number | null
  url_encrypted: string | null
  secret_encrypted: string
  next_secret_encrypted: string | null
  /** JSON: encrypted values by name. */
  headers_encrypted: string
  created_by: string | null
  created_at: number
  updated_at: number
}

function webhookFromRow(row: WebhookRow): Webhook {
  return {
    id: row.id,
    accountId: row.account_id,
    url: row.url,
    description: row.description,
    eventTypes: JSON.parse(row.event_types) as string[],
    format: row.format,
    ordering: row.ordering,
    headerNames: Object.keys(JSON.parse(row.headers_encrypted)),
    enabled: Boolean(row.enabled),
    disabledAt: row.disabled_at,
    suspendedAt: row.suspended_at,
    hasNextSecret: row.next_secret_encrypted !== null,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** A webhook as the public API shows it. */
export type PublicWebhook = components['schemas']['Webhook']

/** Without secrets. */
export function toPublicWebhook(webhook: Webhook): PublicWebhook {
  return {
    id: webhook.id,
    url: webhook.url,
    description: webhook.description,
    // The contract, the console and the commands accept no other types.
    event_types: webhook.eventTypes as PublicWebhook['event_types'],
    format: webhook.format,
    ordering: webhook.ordering,
    header_names: webhook.headerNames,
    enabled: webhook.enabled,
    disabled_at: webhook.enabled ? null : toNullableTimestamp(webhook.disabledAt),
    secret: null,
    has_next_secret: webhook.hasNextSecret,
    next_secret: null,
    created_at: toTimestamp(webhook.createdAt),
    updated_at: toTimestamp(webhook.updatedAt),
  }
}

export const webhookListing: Listing<WebhookRow, PublicWebhook> = {
  table: 'webhooks',
  fromRow: (row) => toPublicWebhook(webhookFromRow(row)),
  condition: 'webhooks.deleted_at is null',
}

export class TooManyWebhooks extends Refused {
  override name = 'TooManyWebhooks'
  constructor(limit: number) {
    super(`An account may have at most ${countNoun(limit, 'webhook')}. Delete one first.`)
  }
}

export class TooManyHeaders extends Refused {
  override name = 'TooManyHeaders'
  constructor() {
    super(`A webhook may have at most ${MAX_HEADERS} headers. Remove one first.`)
  }
}

/** A Slack channel gets operational events alone, and its URL cannot be read back or changed. */
export class NotForSlack extends Refused {
  override name = 'NotForSlack'
  constructor() {
    super('A Slack channel gets muster.* events alone, and its URL cannot be changed.')
  }
}

const MAX_HEADERS = 20

/** Otherwise, a user who may change the URL could read the values of headers: on a server of their
 *  own. */
export class HeadersOfOtherHost extends Refused {
  override name = 'HeadersOfOtherHost'
  constructor(names: string[]) {
    super(
      'The URL leads to another host, which must not get the stored values of headers. ' +
        `Enter them again, or remove the headers: ${names.join(', ')}.`,
    )
  }
}

export interface NewWebhook {
  url: string
  description: string
  eventTypes: string[]
  /** For a Slack channel: returns the encrypted URL for a webhook ID. `url` is without the path. */
  sealUrl?(id: string): string
  ordering?: Ordering
  /** Default: true. */
  enabled?: boolean
  createdBy: string | null
}

/** `seal` returns the encrypted signing secret for a webhook ID. Throws `TooManyWebhooks`. */
export async function insertWebhook(
  scope: WriteScope,
  webhook: NewWebhook,
  seal: (id: string) => string,
  now: Date,
): Promise<Webhook> {
  // Locks the account: otherwise two concurrent inserts could exceed the quota, and the webhook
  // could miss a concurrent suspension.
  const account = await lockAccount(scope)
  const count = await countFound(notDeleted(scope))
  const quotas = await findQuotas(scope, FIXED_DEFAULTS)
  if (count >= quotas.webhooks) throw new TooManyWebhooks(quotas.webhooks)

  const id = newId()
  const row: Omit<WebhookRow, 'account_id'> = {
    id,
    url: webhook.url,
    description: webhook.description,
    event_types: JSON.stringify(webhook.eventTypes),
    format: webhook.sealUrl ? 'slack' : 'event',
    url_encrypted: webhook.sealUrl?.(id) ?? null,
    ordering: webhook.ordering ?? 'none',
    enabled: webhook.enabled ?? true,
    disabled_at: webhook.enabled === false ? now.getTime() : null,
    suspended_at: account?.suspendedAt ?? null,
    secret_encrypted: seal(id),
    next_secret_encrypted: null,
    headers_encrypted: '{}',
    created_by: webhook.createdBy,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  await scope.insert('webhooks', row)
  return webhookFromRow({ ...row, account_id: scope.accountId })
}

/** Oldest first, without deleted ones. */
export async function listWebhooks(scope: Scope): Promise<Webhook[]> {
  const rows: WebhookRow[] = await notDeleted(scope).orderBy('id')
  return rows.map(webhookFromRow)
}

export async function findWebhook(scope: Scope, id: string): Promise<Webhook | undefined> {
  const row: WebhookRow | undefined = await notDeleted(scope)
    .where({ id: toStoredId(id) })
    .first()
  return row && webhookFromRow(row)
}

/** Names by ID, including deleted webhooks. */
export async function findWebhookNames(
  scope: Scope,
  ids: string[],
  nameOf = webhookName,
): Promise<Map<string, string>> {
  const rows: Pick<WebhookRow, 'id' | 'url' | 'description'>[] = await scope
    .rows('webhooks')
    .whereIn('id', [...new Set(ids)])
    .select('id', 'url', 'description')
  return new Map(rows.map((row) => [row.id, nameOf(row)]))
}

/** The description, or the URL without its scheme. */
export function webhookName({ url, description }: Pick<Webhook, 'url' | 'description'>): string {
  return description === '' ? readableUrl(url).replace(/^https?:\/\//, '') : description
}

/** The description, or the host. The path of a URL may be a secret. */
export function shareableName({ url, description }: Pick<Webhook, 'url' | 'description'>): string {
  return description === '' ? new URL(url).host : description
}

/** The URL with its host as people write it: `bücher.example`, not `xn--bcher-kva.example`. */
export function readableUrl(url: string): string {
  const { hostname } = new URL(url)
  return hostname.includes('xn--')
    ? url.replace(hostname, domainToUnicode(hostname) || hostname)
    : url
}

export function webhookTarget(webhook: Webhook): AuditTarget {
  return { type: 'webhook', id: webhook.id, name: webhookName(webhook) }
}

/** The fields that users change, for the details of an audit entry. Of headers it has the names, and
 *  says which of them have got a value by the change. */
export const toAuditDetails = (
  { url, description, eventTypes, ordering, headerNames }: Webhook,
  changedHeaders: SealedHeaderChange = {},
) => ({
  url,
  description,
  event_types: eventTypes.join(', '),
  ordering,
  headers: headerNames
    .map((name) => (changedHeaders[name] ? `${name} (new value)` : name))
    .join(', '),
})

export function countWebhooks(sql: Sql): Promise<number> {
  return countFound(sql('webhooks').whereNull('deleted_at'))
}

/** Encrypted values by name. Null removes the header. */
type SealedHeaderChange = Record<string, string | null>

export interface WebhookChange {
  url?: string
  description?: string
  eventTypes?: string[]
  ordering?: Ordering
  /** Other headers stay. */
  headers?: SealedHeaderChange
}

/** Throws `TooManyHeaders`, `HeadersOfOtherHost` and `NotForSlack`. */
export async function updateWebhook(
  scope: WriteScope,
  id: string,
  { url, description, eventTypes, ordering, headers }: WebhookChange,
  now: Date,
): Promise<Webhook | undefined> {
  // Locked, so that concurrent changes of two headers are both stored.
  const before: WebhookRow | undefined = await notDeleted(scope)
    .where({ id })
    .forNoKeyUpdate()
    .first()
  if (!before) return undefined
  const isOtherUrl = url !== undefined && url !== before.url
  if (before.format === 'slack' && (isOtherUrl || !(eventTypes ?? []).every(isOperational)))
    throw new NotForSlack()
  if (isOtherUrl) await endOutage(scope.sql, id)
  const event_types = eventTypes && JSON.stringify(eventTypes)
  const headers_encrypted = JSON.stringify(mergeHeaders(before, url ?? before.url, headers))
  return updateColumns(scope, id, now, {
    url,
    description,
    event_types,
    ordering,
    headers_encrypted,
  })
}

function mergeHeaders(
  before: Pick<WebhookRow, 'url' | 'headers_encrypted'>,
  url: string,
  change: SealedHeaderChange = {},
): SealedHeaderChange {
  // Names are case-insensitive: RFC 9110 §5.1.
  const changed = new Set(Object.keys(change).map((name) => name.toLowerCase()))
  const stored = Object.entries<string>(JSON.parse(before.headers_encrypted))
  const kept = stored.filter(([name]) => !changed.has(name.toLowerCase()))
  if (kept.length > 0 && !haveSameOrigin(url, before.url))
    throw new HeadersOfOtherHost(kept.map(([name]) => name))
  const merged = [...kept, ...Object.entries(change).filter(([, value]) => value !== null)]
  if (merged.length > MAX_HEADERS) throw new TooManyHeaders()
  return Object.fromEntries(merged)
}

/** Whether scheme, host and port are equal. */
export function haveSameOrigin(one: string, other: string): boolean {
  return new URL(one).origin === new URL(other).origin
}

/** Enables a webhook, ends its outage, and resumes the bulk jobs that were paused because it was
 *  disabled. Does nothing to an enabled webhook. Returns the webhook before the change. */
export async function enableWebhook(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Webhook | undefined> {
  const before = await lockWebhook(scope, id)
  if (before?.enabled === false) {
    await updateColumns(scope, id, now, { enabled: true })
    await endOutage(scope.sql, id)
    await resumeInterruptedJobs(scope, id, now)
  }
  return before
}

/** Disables a webhook, and ends its pending and retrying deliveries as failed. Does nothing to a
 *  disabled webhook. Returns the webhook before the change. */
export async function disableWebhook(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Webhook | undefined> {
  const before = await lockWebhook(scope, id)
  if (before?.enabled) {
    await updateColumns(scope, id, now, { enabled: false, disabled_at: now.getTime() })
    await endUnfinishedDeliveries(scope, id, 'webhook_disabled', now)
  }
  return before
}

/** On PostgreSQL the webhook stays locked until the transaction ends, so that a concurrent change
 *  waits and then sees this change. */
export async function lockWebhook(scope: WriteScope, id: string): Promise<Webhook | undefined> {
  const row: WebhookRow | undefined = await notDeleted(scope)
    .where({ id: toStoredId(id) })
    .forNoKeyUpdate()
    .first()
  return row && webhookFromRow(row)
}

/** Ends pending and retrying deliveries as failed. Erases the secrets and headers, because no attempt
 *  starts after the commit. The other columns stay for the log of the deliveries. */
export async function deleteWebhook(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Webhook | undefined> {
  const webhook = await updateColumns(scope, id, now, {
    enabled: false,
    deleted_at: now.getTime(),
    url_encrypted: null,
    secret_encrypted: '',
    next_secret_encrypted: null,
    headers_encrypted: '{}',
  })
  if (webhook) await endUnfinishedDeliveries(scope, id, 'webhook_deleted', now)
  return webhook
}

/** Stops the attempts of all webhooks of the account, or with null lets them continue. Each webhook
 *  keeps its other state, and each delivery its schedule. */
export async function updateSuspendedAt(
  scope: WriteScope,
  suspendedAt: number | null,
): Promise<void> {
  await scope.rows('webhooks').update({ suspended_at: suspendedAt })
}

/** Leaves columns that are undefined as they are. Returns undefined when the webhook does not exist
 *  or was deleted. */
export async function updateColumns(
  scope: WriteScope,
  id: string,
  now: Date,
  columns: Record<string, unknown>,
): Promise<Webhook | undefined> {
  const [row]: WebhookRow[] = await notDeleted(scope)
    .where({ id })
    .update({ ...columns, updated_at: now.getTime() })
    .returning('*')
  return row && webhookFromRow(row)
}

export function notDeleted(scope: Scope): ReturnType<Scope['rows']> {
  return scope.rows('webhooks').whereNull('webhooks.deleted_at')
}
