/** The secrets of webhooks, encrypted: signing secrets, and values of headers. */
import { Refused } from '../errors.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import { LOWEST_ID } from './ids.ts'
import {
  findWebhook,
  notDeleted,
  updateColumns,
  type Webhook,
  type WebhookRow,
} from './webhooks.ts'

/** The encrypted signing secrets of a webhook. */
export interface SealedSecrets {
  current: string
  next: string | null
}

export class NoNextSecret extends Refused {
  override name = 'NoNextSecret'
  constructor() {
    super('There is no next secret. Prepare one first.')
  }
}

/** What the attempts of each enabled webhook need, by ID: the current signing secret, the
 *  URL of a Slack channel, and the values of the headers, encrypted. */
export async function listEnabledSecrets(scope: Scope): Promise<Map<string, string[]>> {
  const rows: WebhookRow[] = await notDeleted(scope)
    .where({ enabled: true })
    .select('id', 'secret_encrypted', 'headers_encrypted', 'url_encrypted')
  return new Map(
    rows.map((row) => [
      row.id,
      [row.secret_encrypted, row.url_encrypted ?? [], sealedValues(row.headers_encrypted)].flat(),
    ]),
  )
}

const sealedValues = (headers: string): string[] => Object.values(JSON.parse(headers))

export async function findSealedSecrets(
  scope: Scope,
  id: string,
): Promise<SealedSecrets | undefined> {
  const row: Pick<WebhookRow, 'secret_encrypted' | 'next_secret_encrypted'> | undefined =
    await notDeleted(scope).where({ id }).first('secret_encrypted', 'next_secret_encrypted')
  return row && { current: row.secret_encrypted, next: row.next_secret_encrypted }
}

/** Encrypted values of headers by name. */
export async function findSealedHeaders(scope: Scope, id: string): Promise<Record<string, string>> {
  const row: Pick<WebhookRow, 'headers_encrypted'> | undefined = await notDeleted(scope)
    .where({ id })
    .first('headers_encrypted')
  return JSON.parse(row?.headers_encrypted ?? '{}')
}

interface AllSecrets extends SealedSecrets {
  /** Null: the URL is no secret. */
  url: string | null
  /** Encrypted values by name. */
  headers: Record<string, string>
}

interface WebhookSecrets extends AllSecrets {
  id: string
  enabled: boolean
}

interface SecretsPage {
  /** Default: the first page. */
  afterId?: string
  limit: number
  /** Locks the rows until the transaction ends. */
  forUpdate?: boolean
}

/** A page of the webhooks of all accounts with their encrypted secrets, in the order of the webhook
 *  IDs, without deleted webhooks. */
export async function listSealedSecrets(
  sql: Sql,
  { afterId = LOWEST_ID, limit, forUpdate = false }: SecretsPage,
): Promise<WebhookSecrets[]> {
  const query = sql('webhooks')
    .whereNull('deleted_at')
    .where('id', '>', afterId)
    .orderBy('id')
    .limit(limit)
    .select(
      'id',
      'enabled',
      'url_encrypted',
      'secret_encrypted',
      'next_secret_encrypted',
      'headers_encrypted',
    )
  const rows: WebhookRow[] = await (forUpdate ? query.forUpdate() : query)
  return rows.map((row) => ({
    id: row.id,
    enabled: Boolean(row.enabled),
    url: row.url_encrypted,
    current: row.secret_encrypted,
    next: row.next_secret_encrypted,
    headers: JSON.parse(row.headers_encrypted),
  }))
}

/** Stores the same secrets, encrypted with another key. */
export async function updateSealedSecrets(
  sql: Sql,
  id: string,
  { url, current, next, headers }: AllSecrets,
): Promise<void> {
  await sql('webhooks')
    .where({ id })
    .update({
      url_encrypted: url,
      secret_encrypted: current,
      next_secret_encrypted: next,
      headers_encrypted: JSON.stringify(headers),
    })
}

/** Stores the next secret beside the current one. Replaces an earlier next secret. */
export async function prepareSecret(
  scope: WriteScope,
  id: string,
  sealed: string,
  now: Date,
): Promise<Webhook | undefined> {
  return updateColumns(scope, id, now, { next_secret_encrypted: sealed })
}

/** The next secret signs from the next attempt on. Throws `NoNextSecret` when none is prepared. */
export async function activateSecret(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<Webhook | undefined> {
  const updated = await notDeleted(scope)
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
