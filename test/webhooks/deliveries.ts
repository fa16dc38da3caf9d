/** The whole service with its delivery engine, for tests of single deliveries. */
import { randomUUID } from 'node:crypto'
import { listAttempts, type RecordedAttempt } from '../../records/attempts.ts'
import { accountScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { type Delivery, findDelivery } from '../../records/deliveries.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { emit } from '../../webhooks/emit.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { startApp, until } from '../helpers.ts'

export interface Deliveries extends AsyncDisposable {
  /** Creates a webhook and one event, and waits until its delivery has ended. Does not check the URL. */
  deliver(url: string): Promise<{ delivery: Delivery; attempts: RecordedAttempt[] }>
}

export async function startDeliveries(environment: Record<string, string>): Promise<Deliveries> {
  const app = await startApp({ role: 'all', environment })
  return {
    async deliver(url) {
      const { accountId } = await app.newAccount()
      const scope = accountScope({ dialect: app.db.dialect, sql: app.db.read }, accountId)
      const secret = newSecret()
      const webhook = { url, description: '', eventTypes: ['*'], createdBy: null }
      await transaction(app.db, async (trx) => {
        const own = writeScope(trx, accountId)
        await insertWebhook(
          own,
          webhook,
          (id) => sealSecret(app.config.secretKey, id, secret),
          new Date(),
        )
        await emit(own, 'participant.created', randomUUID(), [], new Date())
      })
      const [{ id }] = await scope.rows('deliveries').select('id')
      const delivery = await until('the delivery ended', async () => {
        const found = await findDelivery(scope, id)
        return found?.nextAttemptAt === null && found
      })
      return { delivery, attempts: await listAttempts(scope, id) }
    },
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  }
}
