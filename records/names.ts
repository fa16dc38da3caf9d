import { Refused } from '../errors.ts'

/** Returns `value` trimmed. Throws `Refused`, which calls it `what`, when it is no name: empty, over 200 characters, or with control characters. */
export function assertName(what: string, value: string): string {
  const name = value.trim()
  if (name === '') throw new Refused(`${what} must not be empty`)
  if (name.length > 200) throw new Refused(`${what} must be at most 200 characters long`)
  if (/\p{Cc}/u.test(name)) throw new Refused(`${what} must not hold control characters`)
  return name
}
