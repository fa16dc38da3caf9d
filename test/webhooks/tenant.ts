/** An account with webhooks, for tests of manual operations and bulk jobs on deliveries. */
import { randomUUID } from 'node:crypto'
import { type BulkJob, type BulkSelection, findBulkJob } from '../../records/bulk-jobs.ts'
import type { Db } from '../../records/database/open.ts'
import {
  accountScope,
  type Scope,
  type WriteScope,
  writeScope,
} from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { type Delivery, findDelivery, listDeliveries } from '../../records/deliveries.ts'
import { cancelDelivery } from '../../records/delivery-commands.ts'
import {
  disableWebhook,
  enableWebhook,
  findWebhook,
  insertWebhook,
} from '../../records/webhooks.ts'
import { MAX_RATE, missedBy, type Span, startBulkJob } from '../../webhooks/bulk.ts'
import { emitMany, type NewEvent } from '../../webhooks/emit.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { type TestApp, until } from '../helpers.ts'
import { type Receiver, startReceiver } from '../receiver.ts'

export interface Tenant {
  db: Db
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

export type TenantApp = Pick<TestApp, 'db' | 'config'> & {
  newAccount(): Promise<{ accountId: string }>
}

export async function newTenant({ db, config, newAccount }: TenantApp): Promise<Tenant> {
  const { accountId } = await newAccount()
  const scope = accountScope({ dialect: db.dialect, sql: db.read }, accountId)
  const tenant: Tenant = {
    db,
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

/** Webhooks use it when no retry may happen during a test. */
export const NEVER = '600,600,600,600,600,600,600,600,600'

/** The events that a webhook missed. */
export async function selectMissed(
  { scope }: Tenant,
  webhookId: string,
  span: Span = {},
): Promise<BulkSelection> {
  const webhook = await findWebhook(scope, webhookId)
  if (!webhook) throw new Error('There is no webhook')
  return missedBy(webhook, span, new Date())
}

/** Starts a bulk job. `rate` is in deliveries per second. */
export function startJob(
  { db, accountId }: Tenant,
  selection: BulkSelection,
  rate = MAX_RATE,
): Promise<BulkJob> {
  return startBulkJob(db, accountId, selection, { rate, createdBy: null }, new Date())
}

export async function findJob({ scope }: Tenant, id: string): Promise<BulkJob> {
  const job = await findBulkJob(scope, id)
  if (!job) throw new Error('There is no job')
  return job
}

/** Waits until a job is in this state. */
export function waitForJob(
  tenant: Tenant,
  id: string,
  state: BulkJob['state'],
  timeoutMs = 30_000,
): Promise<BulkJob> {
  const condition = async (): Promise<BulkJob | false> => {
    const job = await findJob(tenant, id)
    return job.state === state && job
  }
  return until(`the job is ${state}`, condition, timeoutMs)
}

/** Waits until the account has this number of deliveries and all of them have ended. */
export function allEnded(tenant: Tenant, count: number): Promise<Delivery[]> {
  const condition = async (): Promise<Delivery[] | false> => {
    const deliveries = await tenant.deliveries()
    const ended = deliveries.filter(
      ({ state, nextAttemptAt }) =>
        nextAttemptAt === null && (state === 'delivered' || state === 'failed'),
    )
    return deliveries.length === count && ended.length === count && deliveries
  }
  return until(`${count} deliveries have ended`, condition, 30_000)
}

export interface Outage extends AsyncDisposable {
  tenant: Tenant
  receiver: Receiver
  webhookId: string
}

/** An enabled webhook that was disabled during `count` events. */
export async function newOutage(app: TenantApp, count: number): Promise<Outage> {
  const receiver = await startReceiver()
  const tenant = await newTenant(app)
  const webhookId = await tenant.subscribe(receiver.url)
  await tenant.write((own) => disableWebhook(own, webhookId, new Date()))
  await tenant.emit(count)
  await tenant.write((own) => enableWebhook(own, webhookId, new Date()))
  return {
    tenant,
    receiver,
    webhookId,
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  }
}

/** Waits until `count` deliveries have failed once, and cancels their retries. */
export async function cancelRetrying(tenant: Tenant, count: number): Promise<void> {
  const retrying = await until(`${count} deliveries have failed once`, async () => {
    const found = (await tenant.deliveries()).filter(({ state }) => state === 'retrying')
    return found.length === count && found
  })
  for (const { id } of retrying) await tenant.write((own) => cancelDelivery(own, id, new Date()))
}

/** The delivery IDs of all requests, sorted. */
export const receivedIds = ({ requests }: Receiver): string[] =>
  requests.map(({ headers }) => String(headers['webhook-id'])).sort()
