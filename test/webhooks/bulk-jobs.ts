/** Bulk jobs on the deliveries of a tenant. */
import { type BulkJob, type BulkSelection, findBulkJob } from '../../records/bulk-jobs.ts'
import type { Delivery } from '../../records/deliveries.ts'
import { cancelDelivery } from '../../records/delivery-commands.ts'
import { disableWebhook, enableWebhook, findWebhook } from '../../records/webhooks.ts'
import { MAX_RATE, selectMissedEvents, startBulkJob } from '../../webhooks/bulk.ts'
import { until } from '../helpers.ts'
import type { Receiver } from '../receiver.ts'
import { type Accounts, newSubscriber, type Subscriber, type Tenant } from './harness.ts'

/** Selects the events that a webhook missed. */
export async function selectMissed(
  { scope }: Tenant,
  webhookId: string,
  range: { since?: Date; until?: Date } = {},
): Promise<BulkSelection> {
  const webhook = await findWebhook(scope, webhookId)
  if (!webhook) throw new Error('There is no webhook')
  return selectMissedEvents(webhook, range, new Date())
}

/** Starts a bulk job. `rate` is in deliveries per second. */
export function startJob(
  { db, accountId }: Tenant,
  selection: BulkSelection,
  rate = MAX_RATE,
): Promise<BulkJob> {
  return startBulkJob(db, accountId, { selection, rate, createdBy: null }, new Date())
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
  const all = () => tenant.db.read('deliveries').where({ account_id: tenant.accountId })
  // Counts them: reading thousands of rows again and again would delay what it waits for.
  const condition = async (): Promise<Delivery[] | false> => {
    const ended = all().whereNull('next_attempt_at').whereIn('state', ['delivered', 'failed'])
    const rows = await Promise.all([all(), ended].map((query) => query.count({ total: '*' })))
    return rows.every(([row]) => Number(row?.total) === count) && tenant.deliveries()
  }
  return until(`${count} deliveries have ended`, condition, 50_000)
}

/** An enabled webhook that was disabled during `count` events. */
export async function newOutage(accounts: Accounts, count: number): Promise<Subscriber> {
  const subscriber = await newSubscriber(accounts)
  const { tenant, webhookId } = subscriber
  await tenant.write((scope) => disableWebhook(scope, webhookId, new Date()))
  await tenant.emit(count)
  await tenant.write((scope) => enableWebhook(scope, webhookId, new Date()))
  return subscriber
}

/** Waits until `count` deliveries have failed once, and cancels their retries. */
export async function cancelRetrying(tenant: Tenant, count: number): Promise<void> {
  const retrying = await until(`${count} deliveries have failed once`, async () => {
    const found = (await tenant.deliveries()).filter(({ state }) => state === 'retrying')
    return found.length === count && found
  })
  for (const { id } of retrying)
    await tenant.write((scope) => cancelDelivery(scope, { id }, new Date()))
}

/** The delivery IDs of all requests, sorted. */
export const receivedIds = ({ requests }: Receiver): string[] =>
  requests.map(({ headers }) => String(headers['webhook-id'])).sort()
