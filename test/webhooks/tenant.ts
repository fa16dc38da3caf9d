/** An account with webhooks, for tests of manual operations on deliveries. */
import { randomUUID } from 'node:crypto'
import {
  accountScope,
  type Scope,
  type WriteScope,
  writeScope,
} from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { type Delivery, findDelivery, listDeliveries } from '../../records/deliveries.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { emitMany, type NewEvent } from '../../webhooks/emit.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { type TestApp, until } from '../helpers.ts'

export interface Tenant {
  accountId: string
  scope: Scope
  write<T>(work: (scope: WriteScope) => Promise<T>): Promise<T>
  /** Creates a webhook and returns its ID. For all events by default. */
  subscribe(url: string, eventTypes?: string[]): Promise<string>
  /** Emits events, each for a different record; `participant.created` by default. */
  emit(
    count?: number,
    eventType?: 'participant.created' | 'task.created' | 'job.created',
  ): Promise<void>
  /** Newest first. */
  deliveries(): Promise<Delivery[]>
  find(id: string): Promise<Delivery>
  /** Waits until the delivery has no scheduled attempt. */
  settled(id: string): Promise<Delivery>
}

export async function newTenant({ db, config, newAccount }: TestApp): Promise<Tenant> {
  const { accountId } = await newAccount()
  const scope = accountScope({ dialect: db.dialect, sql: db.read }, accountId)
  const tenant: Tenant = {
    accountId,
    scope,
    write: (work) => transaction(db, (trx) => work(writeScope(trx, accountId))),
    async subscribe(url, eventTypes = ['*']) {
      const webhook = { url, description: '', eventTypes, createdBy: null }
      const seal = (id: string): string => sealSecret(config.secretKey, id, newSecret())
      return (await tenant.write((own) => insertWebhook(own, webhook, seal, new Date()))).id
    },
    async emit(count = 1, eventType = 'participant.created') {
      const events: NewEvent[] = Array.from({ length: count }, () => ({
        eventType,
        resourceId: randomUUID(),
        data: [],
      }))
      await tenant.write((own) => emitMany(own, events, new Date()))
    },
    deliveries: () => listDeliveries(scope, { limit: 10_000 }),
    async find(id) {
      const delivery = await findDelivery(scope, id)
      if (!delivery) throw new Error('There is no such delivery')
      return delivery
    },
    settled: (id) =>
      until('the delivery ended', async () => {
        const delivery = await tenant.find(id)
        return delivery.nextAttemptAt === null && delivery
      }),
  }
  return tenant
}
