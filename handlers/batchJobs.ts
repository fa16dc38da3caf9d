import type { SuccessBody } from '../generated/operations.ts'
import type { Call } from './call.ts'

export function batchJobs({
  body,
  runBatch,
}: Call<'batchJobs'>): Promise<SuccessBody<'batchJobs'>> {
  return runBatch(body)
}
