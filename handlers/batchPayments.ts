import type { SuccessBody } from '../generated/operations.ts'
import type { Call } from './call.ts'

export function batchPayments({
  body,
  runBatch,
}: Call<'batchPayments'>): Promise<SuccessBody<'batchPayments'>> {
  return runBatch(body)
}
