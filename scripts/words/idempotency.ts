/** `x-idempotency-key` of a header parameter: requests with the same value have one effect. */
import type { Operation } from '../model/operations.ts'
import { readWord } from './read.ts'
import { isOfUser } from './scope.ts'

export interface IdempotencyKey {
  /** The name of the header. */
  name: string
  /** The name of the header that has the value `true` if the response repeats an earlier one. */
  replayed?: string
  /** How long a repeated request waits for the first one before it gets 409. */
  waits_seconds?: number
  /** `x-scope`: the keys of other users are other keys. */
  isOfUser: boolean
}

/** Undefined if the operation takes no such header. */
export function findIdempotencyKey({ parameters }: Operation): IdempotencyKey | undefined {
  for (const { name, place } of parameters) {
    const words = readWord<Omit<IdempotencyKey, 'name' | 'isOfUser'>>(place, 'x-idempotency-key')
    if (words !== undefined) return { name, ...words, isOfUser: isOfUser(place) }
  }
  return undefined
}
