/** An account with webhooks, and an Admin who manages them in the console. */
import { type Delivery, listDeliveries } from '../../records/deliveries.ts'
import { disableWebhook, enableWebhook, findWebhook, type Webhook } from '../../records/webhooks.ts'
import { type TestApp, until } from '../helpers.ts'
import { newTenant, type Tenant } from '../webhooks/harness.ts'
import { type ConsoleAnswer, newPerson, type Person, type Visitor, visitor } from './visitors.ts'

export interface WebhookAdmin extends Tenant {
  /** An Admin who manages webhooks. */
  manager: Person
  visitor: Visitor
  /** Waits until the newest delivery of a webhook is in this state with no attempt due. */
  newest(webhookId: string, state: Delivery['state']): Promise<Delivery>
  audited(): Promise<{ action: string; targetId: string; details: Record<string, unknown> }[]>
}

export async function newWebhookAdmin(app: TestApp): Promise<WebhookAdmin> {
  const tenant = await newTenant(app)
  const { accountId } = tenant
  const manager = await newPerson(app, accountId, { fullName: 'Jonas Weber', grants: ['webhooks'] })
  return {
    ...tenant,
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
    async audited() {
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
  if (!webhook) throw new Error('There is no webhook')
  return webhook
}

/** A webhook that was disabled while `count` events happened, and is enabled again. */
export async function subscribeAndMiss(
  admin: WebhookAdmin,
  url: string,
  count: number,
): Promise<string> {
  const id = await admin.subscribe(url)
  await admin.write((own) => disableWebhook(own, id, new Date()))
  await admin.emit(count)
  await admin.write((own) => enableWebhook(own, id, new Date()))
  return id
}

export const SECRET_PATTERN = /whsec_[A-Za-z0-9+/]{43}=/

/** The signing secret on a page. Throws if there is none. */
export function readSecret({ text, status }: ConsoleAnswer): string {
  const [secret] = text.match(SECRET_PATTERN) ?? []
  if (status !== 200 || secret === undefined) throw new Error(`There is no secret in ${text}`)
  return secret
}
