import type { SuccessBody } from '../generated/operations.ts'
import type { Call } from './call.ts'

export function batchParticipants({
  body,
  runBatch,
}: Call<'batchParticipants'>): Promise<SuccessBody<'batchParticipants'>> {
  return runBatch(body)
}
