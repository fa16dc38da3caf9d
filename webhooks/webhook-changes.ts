/** Changes of webhooks and deliveries with their entries in the audit log, for the API and the
 *  console. Those that take an ID return undefined if the record does not exist. */
import { assertFound, type FieldErrors, InvalidInput, Refused, throwConflict } from '../errors.ts'
import { readAccountName } from '../records/accounts.ts'
import { type AuditTarget, changesBetween } from '../records/audit-log.ts'
import { countSelected } from '../records/bulk-batches.ts'
import {
  type BulkJob,
  type BulkSelection,
  cancelBulkJob,
  insertBulkJob,
  type NewBulkJob,
  type PublicBulkJob,
  pauseBulkJob,
  resumeBulkJob,
  toPublicBulkJob,
} from '../records/bulk-jobs.ts'
import type { WriteScope } from '../records/database/scope.ts'
import type { Delivery } from '../records/deliveries.ts'
import {
  attemptNow,
  cancelDelivery,
  resendDelivery,
  retryDelivery,
} from '../records/delivery-commands.ts'
import { activateSecret, findSealedHeaders, prepareSecret } from '../records/webhook-secrets.ts'
import {
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  findWebhook,
  findWebhookNames,
  haveSameOrigin,
  insertWebhook,
  type NewWebhook,
  toAuditDetails,
  updateWebhook,
  type Webhook,
  type WebhookChange,
  webhookTarget,
} from '../records/webhooks.ts'
import { emitTest } from './emit.ts'
import { findSealingKey, sealHeaders } from './secret-keys.ts'
import { assertHeader, type HeaderChange } from './transport/custom-headers.ts'
import { type Cidr, parseWebhookUrl, UnacceptableUrl } from './transport/egress.ts'
import {
  listKeys,
  newSecret,
  openWithKey,
  type SecretKeys,
  sealSecret,
} from './transport/secret.ts'

/** Writes an entry of the audit log. `action` is `noun.verbed`, such as `webhook.created`. */
export type Audit = (
  scope: WriteScope,
  action: string,
  target: AuditTarget,
  details?: Record<string, unknown>,
) => Promise<void>

/** The settings that changes of webhooks need. */
export interface WebhookConfig {
  secretKeys: SecretKeys
  webhookAllowedRanges: Cidr[]
}

/** The transaction of the change, its time, and the log for who makes it. */
export interface Change {
  scope: WriteScope
  now: Date
  audit: Audit
}

/** Throws `InvalidInput` for fields that the contract accepts and that no webhook can have. */
export function assertWebhookFields(
  { url, description }: { url?: string; description?: string },
  { webhookAllowedRanges }: WebhookConfig,
): void {
  const errors: FieldErrors = {}
  try {
    if (url !== undefined) parseWebhookUrl(url, webhookAllowedRanges)
  } catch (error) {
    if (!(error instanceof UnacceptableUrl)) throw error
    errors.url = [error.message]
  }
  if (description !== undefined && /\p{Cc}/u.test(description))
    errors.description = ['must not contain control characters.']
  if (Object.keys(errors).length > 0) throw new InvalidInput(errors)
}

/** All headers that a webhook is to have. Null: the stored value. */
type HeaderList = { name: string; value: string | null }[]

/** The change that gives the webhook these headers. A value that is stored already is no change,
 *  unless `url` leads to another host, which needs all values again. Throws `InvalidInput`. */
export async function toHeaderChange(
  scope: WriteScope,
  keys: SecretKeys,
  { id, url: before, headerNames }: Webhook,
  { headers, url = before }: { headers: HeaderList; url?: string },
): Promise<HeaderChange> {
  assertHeaderList(headers)
  const sealed = await findSealedHeaders(scope, id)
  const isStored = (name: string, value: string): boolean =>
    listKeys(keys).some((key) => openWithKey(key, id, sealed[name] ?? '') === value)
  const isSameHost = haveSameOrigin(url, before)
  const names = headers.map(({ name }) => name.toLowerCase())
  const removed = headerNames.filter((name) => !names.includes(name.toLowerCase()))
  const set = headers.filter(
    ({ name, value }) => value !== null && !(isSameHost && isStored(name, value)),
  )
  return Object.fromEntries([
    ...removed.map((name) => [name, null]),
    ...set.map(({ name, value }) => [name, value]),
  ])
}

/** Throws `InvalidInput`. */
export function assertHeaderList(headers: HeaderList): void {
  const errors: FieldErrors = {}
  const names = headers.map(({ name }) => name.toLowerCase())
  for (const [index, { name, value }] of headers.entries()) {
    try {
      assertHeader(name, value)
      if (names.indexOf(name.toLowerCase()) < index)
        throw new Refused('must not be there twice, whatever its case.')
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      errors[`headers.${index}.name`] = [error.message]
    }
  }
  if (Object.keys(errors).length > 0) throw new InvalidInput(errors)
}

/** Throws `TooManyWebhooks`. */
export async function addWebhook(
  { scope, now, audit }: Change,
  secretKeys: SecretKeys,
  fields: NewWebhook,
  headers: HeaderChange,
): Promise<{ webhook: Webhook; secret: string }> {
  const secret = newSecret()
  const key = await findSealingKey(scope.trx, secretKeys)
  const inserted = await insertWebhook(scope, fields, (id) => sealSecret(key, id, secret), now)
  const sealed = await sealHeaders(scope.trx, secretKeys, inserted.id, headers)
  const webhook = (await updateWebhook(scope, inserted.id, { headers: sealed }, now)) ?? inserted
  await audit(scope, 'webhook.created', webhookTarget(webhook), toAuditDetails(webhook))
  return { webhook, secret }
}

/** Adds an incoming webhook of Slack, or of a program that is compatible with it. Throws
 *  `TooManyWebhooks`. */
export async function addSlackChannel(
  { scope, now, audit }: Change,
  secretKeys: SecretKeys,
  { url, ...fields }: NewWebhook,
): Promise<Webhook> {
  const key = await findSealingKey(scope.trx, secretKeys)
  const channel = {
    ...fields,
    url: `${new URL(url).origin}/`,
    sealUrl: (id: string) => sealSecret(key, id, url),
  }
  const webhook = await insertWebhook(scope, channel, (id) => sealSecret(key, id, newSecret()), now)
  await audit(scope, 'webhook.created', webhookTarget(webhook), toAuditDetails(webhook))
  return webhook
}

/** Returns the differences. Empty: the webhook has these values already. Throws `TooManyHeaders`. */
export async function changeWebhook(
  { scope, now, audit }: Change,
  secretKeys: SecretKeys,
  id: string,
  { headers = {}, ...fields }: Omit<WebhookChange, 'headers'> & { headers?: HeaderChange },
): Promise<object | undefined> {
  const sealed = await sealHeaders(scope.trx, secretKeys, id, headers)
  const before = await findWebhook(scope, id)
  const after = await updateWebhook(scope, id, { ...fields, headers: sealed }, now)
  if (!before || !after) return undefined
  const changes = changesBetween(toAuditDetails(before), toAuditDetails(after, sealed))
  if (changes) await audit(scope, 'webhook.updated', webhookTarget(after), { changes })
  return changes ?? {}
}

/** Returns the webhook before the change. */
export async function switchWebhook(
  { scope, now, audit }: Change,
  id: string,
  enabled: boolean,
): Promise<Webhook | undefined> {
  const before = await (enabled ? enableWebhook : disableWebhook)(scope, id, now)
  if (before && before.enabled !== enabled)
    await audit(scope, `webhook.${enabled ? 'enabled' : 'disabled'}`, webhookTarget(before))
  return before
}

export async function removeWebhook(
  { scope, now, audit }: Change,
  id: string,
): Promise<Webhook | undefined> {
  const webhook = await deleteWebhook(scope, id, now)
  if (webhook) await audit(scope, 'webhook.deleted', webhookTarget(webhook), { url: webhook.url })
  return webhook
}

/** Returns the next signing secret. */
export async function prepareNextSecret(
  { scope, now, audit }: Change,
  secretKeys: SecretKeys,
  id: string,
): Promise<string | undefined> {
  const secret = newSecret()
  const sealed = sealSecret(await findSealingKey(scope.trx, secretKeys), id, secret)
  const webhook = await prepareSecret(scope, id, sealed, now)
  if (!webhook) return undefined
  await audit(scope, 'webhook.secret_prepared', webhookTarget(webhook))
  return secret
}

/** Throws `NoNextSecret` when none is prepared. */
export async function activateNextSecret(
  { scope, now, audit }: Change,
  id: string,
): Promise<Webhook | undefined> {
  const webhook = await activateSecret(scope, id, now)
  if (webhook) await audit(scope, 'webhook.secret_activated', webhookTarget(webhook))
  return webhook
}

/** Returns the ID of the delivery. Throws `DeliveryRefused`. */
export async function sendTestEvent(
  { scope, now, audit }: Change,
  id: string,
): Promise<string | undefined> {
  const webhook = await findWebhook(scope, id)
  const deliveryId = await emitTest(scope, id, now)
  if (!webhook || deliveryId === undefined) return undefined
  const details = { delivery_id: deliveryId }
  await audit(scope, 'webhook.test_sent', webhookTarget(webhook), details)
  return deliveryId
}

/** Throws as `insertBulkJob` does. */
export async function startJob(
  { scope, now, audit }: Change,
  webhook: Webhook,
  job: NewBulkJob,
): Promise<BulkJob> {
  const created = await insertBulkJob(scope, job, now)
  const details = { bulk_job_id: created.id, total: job.total, rate: job.rate }
  await audit(scope, `webhook.${created.kind}_started`, webhookTarget(webhook), details)
  return created
}

/** A request of the API to start a job of a webhook. */
interface JobCall extends Change {
  path: { webhook: string }
  body: { rate: number }
  caller: { userId: string }
}

/** Throws 404 without the webhook, and 409 while it is not enabled, deliveries are paused, or such a
 *  job is unfinished. */
export async function startJobByApi(
  call: JobCall,
  select: (webhook: Webhook) => BulkSelection,
): Promise<PublicBulkJob> {
  const { scope, path, body, caller } = call
  const webhook = await findWebhook(scope, path.webhook)
  assertFound(webhook, 'webhook')
  const selection = select(webhook)
  const total = await countSelected(scope, selection)
  const job = { selection, rate: body.rate, total, createdBy: caller.userId }
  return toPublicBulkJob(scope, await startJob(call, webhook, job).catch(throwConflict))
}

const JOB_COMMANDS = {
  pause: { run: pauseBulkJob, verb: 'bulk_job_paused' },
  resume: { run: resumeBulkJob, verb: 'bulk_job_resumed' },
  cancel: { run: cancelBulkJob, verb: 'bulk_job_cancelled' },
}
export type JobCommand = keyof typeof JOB_COMMANDS

/** Throws as the functions of records/bulk-jobs.ts do. */
export async function changeJob(
  { scope, now, audit }: Change,
  { id, kind, webhookId }: BulkJob,
  command: JobCommand,
): Promise<BulkJob | undefined> {
  const { run, verb } = JOB_COMMANDS[command]
  const job = await run(scope, id, now)
  if (!job) return undefined
  const target = await findJobTarget(scope, webhookId)
  await audit(scope, `${target.type}.${verb}`, target, { bulk_job_id: id, kind })
  return job
}

/** A job of all webhooks is audited as a change of the account. */
async function findJobTarget(scope: WriteScope, webhookId: string | null): Promise<AuditTarget> {
  if (webhookId === null)
    return { type: 'account', id: scope.accountId, name: await readAccountName(scope) }
  const names = await findWebhookNames(scope, [webhookId])
  return { type: 'webhook', id: webhookId, name: names.get(webhookId) ?? '' }
}

const DELIVERY_COMMANDS = {
  retry: { run: retryDelivery, verb: 'delivery_retried' },
  resend: { run: resendDelivery, verb: 'delivery_resent' },
  attempt: { run: attemptNow, verb: 'delivery_attempted' },
  cancel: { run: cancelDelivery, verb: 'delivery_cancelled' },
}
export type DeliveryCommand = keyof typeof DELIVERY_COMMANDS

/** Throws `DeliveryRefused`. */
export async function commandDelivery(
  { scope, now, audit }: Change,
  delivery: Delivery,
  command: DeliveryCommand,
): Promise<Delivery | undefined> {
  const { run, verb } = DELIVERY_COMMANDS[command]
  const changed = await run(scope, delivery, now)
  const webhook = await findWebhook(scope, delivery.webhookId)
  if (changed && webhook) {
    const details = { delivery_id: delivery.id, event_type: delivery.eventType }
    await audit(scope, `webhook.${verb}`, webhookTarget(webhook), details)
  }
  return changed
}
