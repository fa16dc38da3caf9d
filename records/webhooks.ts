import { v7 as uuidv7 } from 'uuid'
import { Refused } from '../errors.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { type Sql, select } from './database/statements.ts'
import { endScheduledDeliveries } from './delivery-commands.ts'

export interface Webhook {
  id: string
  accountId: string
  url: string
  description: string
  /** `['*']` is every type, those to come included. */
  eventTypes: string[]
  ordering: Ordering
  enabled: boolean
  /** When it was last disabled. It may have been enabled since. */
  disabledAt: number | null
  /** Is there a next secret, shown but not yet signing? */
  hasNextSecret: boolean
  createdBy: string | null
  /** Epoch milliseconds, as all times of records. */
  createdAt: number
  updatedAt: number
}

/** `by_resource`: the events of one resource arrive one after the other, and one that fails holds back those after it, of that resource alone. */
export const orderings = ['none', 'by_resource'] as const
export type Ordering = (typeof orderings)[number]

/** The secrets of a webhook, sealed. */
export interface SealedSecrets {
  current: string
  next: string | null
}

interface WebhookRow {
  id: string
  account_id: string
  url: string
  description: string
  event_types: string
  ordering: Ordering
  enabled: boolean | number
  disabled_at: number | null
  secret_encrypted: string
  next_secret_encrypted: string | null
  created_by: string | null
  created_at: number
  updated_at: number
}

export function webhookFromRow(row: WebhookRow): Webhook {
  return {
    id: row.id,
    accountId: row.account_id,
    url: row.url,
    description: row.description,
    eventTypes: JSON.parse(row.event_types) as string[],
    ordering: row.ordering,
    enabled: Boolean(row.enabled),
    disabledAt: row.disabled_at,
    hasNextSecret: row.next_secret_encrypted !== null,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

export const MAX_WEBHOOKS_PER_ACCOUNT = 50

/** The account has as many webhooks as it may. */
export class TooManyWebhooks extends Refused {
  override name = 'TooManyWebhooks'
  constructor() {
    super(`An account may have at most ${MAX_WEBHOOKS_PER_ACCOUNT} webhooks. Delete one first.`)
  }
}

/** There is no prepared secret to activate. */
export class NoNextSecret extends Refused {
  override name = 'NoNextSecret'
  constructor() {
    super('There is no next secret. Prepare one first.')
  }
}

export interface NewWebhook {
  url: string
  description: string
  eventTypes: string[]
  ordering?: Ordering
  createdBy: string | null
}

/** Makes a webhook. `seal` encrypts the signing secret for the new webhook's id. Throws `TooManyWebhooks`. */
export async function insertWebhook(
  scope: WriteScope,
  given: NewWebhook,
  seal: (id: string) => string,
  now: Date,
): Promise<Webhook> {
  // The account's row is the lock: two at once would both count 49.
  const account = scope.sql('accounts').where({ id: scope.accountId }).select('id')
  await (scope.dialect === 'postgres' ? account.forUpdate() : account)
  const [counted] = (await present(scope).count({ webhooks: '*' })) as { webhooks: number }[]
  if (Number(counted?.webhooks) >= MAX_WEBHOOKS_PER_ACCOUNT) throw new TooManyWebhooks()

  const id = uuidv7()
  const row = {
    id,
    url: given.url,
    description: given.description,
    event_types: JSON.stringify(given.eventTypes),
    ordering: given.ordering ?? 'none',
    enabled: true,
    disabled_at: null,
    secret_encrypted: seal(id),
    next_secret_encrypted: null,
    created_by: given.createdBy,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  await scope.insert('webhooks', row)
  return webhookFromRow({ ...row, account_id: scope.accountId })
}

/** The account's webhooks that are not deleted, oldest first. */
export async function listWebhooks(scope: Scope): Promise<Webhook[]> {
  const rows: WebhookRow[] = await present(scope).orderBy('id')
  return rows.map(webhookFromRow)
}

/** The enabled ones, with what they are subscribed to. */
export async function listSubscribedWebhooks({
  sql,
  accountId,
}: Scope): Promise<Pick<Webhook, 'id' | 'eventTypes' | 'ordering'>[]> {
  const text =
    'select id, event_types, ordering from webhooks where account_id = ? and deleted_at is null and enabled'
  const rows = await select<Pick<WebhookRow, 'id' | 'event_types' | 'ordering'>>(
    sql,
    text,
    [accountId],
    'list_subscribed_webhooks',
  )
  return rows.map((row) => ({
    id: row.id,
    eventTypes: JSON.parse(row.event_types) as string[],
    ordering: row.ordering,
  }))
}

export async function findWebhook(scope: Scope, id: string): Promise<Webhook | undefined> {
  const row: WebhookRow | undefined = await present(scope).where({ id }).first()
  return row && webhookFromRow(row)
}

/** What to call some webhooks by their ids, those that are deleted included. */
export async function findWebhookNames(scope: Scope, ids: string[]): Promise<Map<string, string>> {
  const rows: Pick<WebhookRow, 'id' | 'url' | 'description'>[] = await scope
    .rows('webhooks')
    .whereIn('id', [...new Set(ids)])
    .select('id', 'url', 'description')
  return new Map(rows.map((row) => [row.id, webhookName(row)]))
}

/** Its description, or where it leads to. */
export function webhookName({ url, description }: Pick<Webhook, 'url' | 'description'>): string {
  return description === '' ? url.replace(/^https?:\/\//, '') : description
}

/** The account that a webhook belongs to: for the operator's command line, which names no account. */
export async function findAccountOfWebhook(sql: Sql, id: string): Promise<string | undefined> {
  const row: { account_id: string } | undefined = await sql('webhooks')
    .where({ id })
    .whereNull('deleted_at')
    .first('account_id')
  return row?.account_id
}

export async function findSealedSecrets(
  scope: Scope,
  id: string,
): Promise<SealedSecrets | undefined> {
  const row: Pick<WebhookRow, 'secret_encrypted' | 'next_secret_encrypted'> | undefined =
    await present(scope).where({ id }).first('secret_encrypted', 'next_secret_encrypted')
  return row && { current: row.secret_encrypted, next: row.next_secret_encrypted }
}

export interface WebhookChange {
  url?: string
  description?: string
  eventTypes?: string[]
  ordering?: Ordering
}

export async function updateWebhook(
  scope: WriteScope,
  id: string,
  change: WebhookChange,
  now: Date,
): Promise<Webhook | undefined> {
  return write(scope, id, now, {
    ...(change.url === undefined ? {} : { url: change.url }),
    ...(change.description === undefined ? {} : { description: change.description }),
    ...(change.eventTypes === undefined ? {} : { event_types: JSON.stringify(change.eventTypes) }),
    ...(change.ordering === undefined ? {} : { ordering: change.ordering }),
  })
}

export async function enableWebhook(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Webhook | undefined> {
  return write(scope, id, now, { enabled: true })
}

/** No new deliveries, and those that are scheduled end as failed. */
export async function disableWebhook(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Webhook | undefined> {
  // Disabled again, it misses events since the first time.
  const disabledAt = scope.sql.raw('case when enabled then ? else disabled_at end', [now.getTime()])
  const webhook = await write(scope, id, now, { enabled: false, disabled_at: disabledAt })
  if (webhook) await endScheduledDeliveries(scope, id, 'webhook_disabled', now)
  return webhook
}

/** Hides the webhook for good; its deliveries stay for the log, and those that are scheduled end as failed. */
export async function deleteWebhook(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Webhook | undefined> {
  const webhook = await write(scope, id, now, { enabled: false, deleted_at: now.getTime() })
  if (webhook) await endScheduledDeliveries(scope, id, 'webhook_deleted', now)
  return webhook
}

/** Keeps the next secret beside the one that signs. Preparing again replaces it. */
export async function prepareSecret(
  scope: WriteScope,
  id: string,
  sealed: string,
  now: Date,
): Promise<Webhook | undefined> {
  return write(scope, id, now, { next_secret_encrypted: sealed })
}

/** From the next attempt on, the next secret signs. Throws `NoNextSecret`. */
export async function activateSecret(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Webhook | undefined> {
  const updated = await present(scope)
    .where({ id })
    .whereNotNull('next_secret_encrypted')
    .update({
      secret_encrypted: scope.sql.raw('next_secret_encrypted'),
      next_secret_encrypted: null,
      updated_at: now.getTime(),
    })
  const webhook = await findWebhook(scope, id)
  if (webhook && updated === 0) throw new NoNextSecret()
  return webhook
}

async function write(
  scope: WriteScope,
  id: string,
  now: Date,
  columns: Record<string, unknown>,
): Promise<Webhook | undefined> {
  const [row]: WebhookRow[] = await present(scope)
    .where({ id })
    .update({ ...columns, updated_at: now.getTime() })
    .returning('*')
  return row && webhookFromRow(row)
}

function present(scope: Scope): ReturnType<Scope['rows']> {
  return scope.rows('webhooks').whereNull('webhooks.deleted_at')
}
