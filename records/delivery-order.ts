/** Deliveries in order: a webhook with `ordering: by_resource` gets the events of a resource one
 *  after the other. */
import type { WriteScope } from './database/scope.ts'
import { UNFINISHED_IN_ORDER } from './index-predicates.ts'

interface OrderedDelivery {
  webhookId: string
  /** The ID of the resource. Undefined: the webhook wants no order. */
  orderingKey?: string
}

/** The deliveries that need not wait for an earlier one, neither stored nor in `deliveries`. */
export async function findFirstInOrder<Delivery extends OrderedDelivery>(
  scope: WriteScope,
  deliveries: Delivery[],
): Promise<Set<Delivery>> {
  const busyKeys = await listBusyKeys(scope, deliveries)
  const first = new Set<Delivery>()
  for (const delivery of deliveries) {
    const key = toKey(delivery)
    if (delivery.orderingKey === undefined || !busyKeys.has(key)) first.add(delivery)
    busyKeys.add(key)
  }
  return first
}

/** The webhooks and ordering keys with an unfinished delivery. The row of that delivery is
 *  share-locked until the commit: otherwise the delivery could finish before the commit, and
 *  nothing would schedule the delivery that waits for it. */
async function listBusyKeys(
  scope: WriteScope,
  deliveries: OrderedDelivery[],
): Promise<Set<string>> {
  const ordered = deliveries.filter(({ orderingKey }) => orderingKey !== undefined)
  if (ordered.length === 0) return new Set()
  const rows: { webhook_id: string; ordering_key: string }[] = await scope
    .rows('deliveries')
    .whereIn('webhook_id', [...new Set(ordered.map(({ webhookId }) => webhookId))])
    .whereIn('ordering_key', [...new Set(ordered.map(({ orderingKey }) => orderingKey ?? ''))])
    .whereRaw(UNFINISHED_IN_ORDER)
    .orderBy('id')
    .forShare()
    .select('webhook_id', 'ordering_key')
  return new Set(
    rows.map((row) => toKey({ webhookId: row.webhook_id, orderingKey: row.ordering_key })),
  )
}

function toKey({ webhookId, orderingKey }: OrderedDelivery): string {
  return `${webhookId} ${orderingKey}`
}
