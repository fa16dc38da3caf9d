import type { SuccessBody } from '../generated/operations.ts'
import type { Call } from './call.ts'

export function batchTasks({
  body,
  runBatch,
}: Call<'batchTasks'>): Promise<SuccessBody<'batchTasks'>> {
  return runBatch(body)
}
