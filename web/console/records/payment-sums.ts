/** The sums of the payments in a list, one for each currency. */
import type { Resource } from '../../../generated/resources.ts'
import { sumPayments } from '../../../records/payments.ts'
import { type Content, html } from '../../shared/html.ts'
import { count } from '../format.ts'
import type { Visit } from '../page.ts'
import { money } from './amounts.ts'

/** The database reads each of them, in about 100 ms. */
const MAX_SUMMED_PAYMENTS = 50_000

/** `query`: that of the list, which has `total` payments. */
export async function paymentSums(
  { scope }: Visit,
  { slug }: Resource,
  query: Record<string, unknown>,
  total: number,
): Promise<Content> {
  if (slug !== 'payments') return false
  if (total > MAX_SUMMED_PAYMENTS)
    return html` · Filter to ${count(MAX_SUMMED_PAYMENTS)} or fewer to see their sum.`
  const sums = await sumPayments(scope, query)
  return sums.map(({ currency, sum }) => html` <span class="sum">${money(sum, currency)}</span>`)
}
