import type { SuccessBody } from '../generated/operations.ts'
import type { Call } from './call.ts'

export function batchJobApplications({
  body,
  runBatch,
}: Call<'batchJobApplications'>): Promise<SuccessBody<'batchJobApplications'>> {
  return runBatch(body)
}
