/** An account with webhooks, and an Admin who manages them in the console. */
import { type Delivery, listDeliveries } from '../../records/deliveries.ts'
import { disableWebhook, enableWebhook, findWebhook, type Webhook } from '../../records/webhooks.ts'
import { type TestApp, until } from '../helpers.ts'
import { newTenant, type Tenant } from '../webhooks/harness.ts'
import {
  type ConsoleAnswer,
  type ConsoleUser,
  newConsoleUser,
  type Visitor,
  visitor,
} from './visitors.ts'

export interface WebhookAdmin extends Tenant {
  owner: ConsoleUser
  /** An Admin who manages webhooks. */
  manager: ConsoleUser
  /** The manager in the console. */
  visitor: Visitor
  /** Waits until the newest delivery of a webhook has this state and, unless the state is
   *  `retrying`, no scheduled attempt. */
  newest(webhookId: string, state: Delivery['state']): Promise<Delivery>
  /** The entries of the audit log, oldest first. */
  auditEntries(): Promise<{ action: string; targetId: string; details: Record<string, unknown> }[]>
}

export async function newWebhookAdmin(app: TestApp): Promise<WebhookAdmin> {
  const tenant = await newTenant(app)
  const { accountId } = tenant
  const { id: ownerId } = await tenant.scope.rows('users').where({ role: 'owner' }).first('id')
  const manager = await newConsoleUser(app, accountId, {
    fullName: 'Jonas Weber',
    grants: ['webhooks'],
  })
  return {
    ...tenant,
    owner: { accountId, userId: ownerId },
    manager,
    visitor: await visitor(app, manager),
    newest: (webhookId, state) =>
      until(`the newest delivery is ${state}`, async () => {
        const [delivery] = await listDeliveries(tenant.scope, { webhookId, limit: 1 })
        return (
          delivery?.state === state &&
          (delivery.nextAttemptAt === null || state === 'retrying') &&
          delivery
        )
      }),
    async auditEntries() {
      const rows: { action: string; target_id: string; details: string }[] = await app.db
        .read('audit_log')
        .where({ account_id: accountId })
        .orderBy('id')
      return rows.map(({ action, target_id, details }) => ({
        action,
        targetId: target_id,
        details: JSON.parse(details),
      }))
    },
  }
}

/** Throws if the webhook does not exist. */
export async function loadWebhook({ scope }: WebhookAdmin, id: string): Promise<Webhook> {
  const webhook = await findWebhook(scope, id)
  if (!webhook) throw new Error(`The account has no webhook ${id}`)
  return webhook
}

/** Creates a webhook, disables it while `count` events are emitted, and enables it. Returns its
 *  ID. */
export async function subscribeAndMiss(
  admin: WebhookAdmin,
  url: string,
  count: number,
): Promise<string> {
  const id = await admin.subscribe(url)
  await admin.write((scope) => disableWebhook(scope, id, new Date()))
  await admin.emit(count)
  await admin.write((scope) => enableWebhook(scope, id, new Date()))
  return id
}

export const SECRET_PATTERN = /whsec_[A-Za-z0-9+/]{43}=/

/** Finds the signing secret on a page. Throws if the page has none. */
export function readSecret({ text, status }: ConsoleAnswer): string {
  const [secret] = text.match(SECRET_PATTERN) ?? []
  if (status !== 200 || secret === undefined)
    throw new Error(`The page has no signing secret: ${text}`)
  return secret
}
