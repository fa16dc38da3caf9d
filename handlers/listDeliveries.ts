import { operations } from '../generated/operations.ts'
import { deliveryListing, type PublicDelivery } from '../records/deliveries.ts'
import { type ListPage, listPage } from '../records/list.ts'
import type { Call } from './call.ts'

export async function listDeliveries(
  call: Call<'listDeliveries'>,
): Promise<ListPage<PublicDelivery>> {
  const { scope, query } = call
  return listPage(scope, deliveryListing, operations.listDeliveries, query)
}
