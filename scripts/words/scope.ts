/** `x-scope: user` of a header: each user has their own count, or their own keys. */
import type { Place } from '../model/source.ts'
import { readWord } from './read.ts'

export function isOfUser(place: Place): boolean {
  return readWord(place, 'x-scope') === 'user'
}
