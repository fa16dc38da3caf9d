/** An account with webhooks and somebody who manages them in the console. */
import { accountScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { type Delivery, listDeliveries } from '../../records/deliveries.ts'
import { findSealedSecrets } from '../../records/webhooks.ts'
import { openSecret } from '../../webhooks/transport/secret.ts'
import { type TestApp, until } from '../helpers.ts'
import { newTenant, type Tenant } from '../webhooks/tenant.ts'
import { newPerson, type Person, type Visitor, visitor } from './visitors.ts'

export interface Office extends Tenant {
  /** An Admin who manages webhooks. */
  manager: Person
  visitor: Visitor
  /** The secret that signs. */
  secretOf(webhookId: string): Promise<string>
  /** The newest delivery of a webhook once it is in this state and nothing more is planned. */
  newest(webhookId: string, state: Delivery['state']): Promise<Delivery>
  audited(): Promise<{ action: string; targetId: string; details: Record<string, unknown> }[]>
}

export async function newOffice(app: TestApp): Promise<Office> {
  const tenant = await newTenant(app)
  const { accountId } = tenant
  const manager = await newPerson(app, accountId, { fullName: 'Jonas Weber', grants: ['webhooks'] })
  return {
    ...tenant,
    manager,
    visitor: await visitor(app, manager),
    async secretOf(webhookId) {
      const sealed = await transaction(app.db, (trx) =>
        findSealedSecrets(accountScope(trx, accountId), webhookId),
      )
      return openSecret(app.config.secretKey, webhookId, sealed?.current ?? '')
    },
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

/** What a page says, without its tags, as somebody reads it. */
export function textOf(page: string): string {
  const main = /<main[\s\S]*<\/main>/.exec(page)?.[0] ?? page
  return main
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replace(/\s+/g, ' ')
}
