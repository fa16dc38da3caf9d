/** Deliveries in order: a webhook with `ordering: by_resource` gets the events of a resource one
 *  after the other. */
import type { WriteScope } from './database/scope.ts'
import { UNFINISHED_IN_ORDER } from './index-predicates.ts'

interface NewDelivery {
  webhookId: string
  /** The resource. Undefined: the webhook wants no order. */
  orderingKey?: string
}

const toKey = ({ webhookId, orderingKey }: NewDelivery): string => `${webhookId} ${orderingKey}`

/** The (webhook, ordering key) pairs with an unfinished delivery. Their rows are share-locked until
 *  the commit: otherwise the earlier delivery could finish before it, and nothing would schedule
 *  the new one. */
export async function listBusyOrderings(
  scope: WriteScope,
  deliveries: NewDelivery[],
): Promise<Set<string>> {
  const ordered = deliveries.filter(({ orderingKey }) => orderingKey !== undefined)
  if (ordered.length === 0) return new Set()
  const query = scope
    .rows('deliveries')
    .whereIn('webhook_id', [...new Set(ordered.map(({ webhookId }) => webhookId))])
    .whereIn('ordering_key', [...new Set(ordered.map(({ orderingKey }) => orderingKey ?? ''))])
    .whereRaw(UNFINISHED_IN_ORDER)
    .orderBy('id')
    .select('webhook_id', 'ordering_key')
  const rows: { webhook_id: string; ordering_key: string }[] = await (scope.dialect === 'postgres'
    ? query.forShare()
    : query)
  return new Set(
    rows.map((row) => toKey({ webhookId: row.webhook_id, orderingKey: row.ordering_key })),
  )
}

/** Adds the pair to `busy`. True when it is the first. */
export function joinQueue(delivery: NewDelivery, busy: Set<string>): boolean {
  if (delivery.orderingKey === undefined) return true
  const key = toKey(delivery)
  const isFirst = !busy.has(key)
  busy.add(key)
  return isFirst
}
