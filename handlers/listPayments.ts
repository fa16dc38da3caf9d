import { operations } from '../generated/operations.ts'
import { type ListPage, listPage } from '../records/list.ts'
import { type Payment, paymentListing } from '../records/payments.ts'
import type { Call } from './call.ts'

export async function listPayments(call: Call<'listPayments'>): Promise<ListPage<Payment>> {
  const { scope, query } = call
  return listPage(scope, paymentListing, operations.listPayments, query)
}
