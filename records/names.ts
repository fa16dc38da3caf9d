import { Refused } from '../errors.ts'

/** Returns the name trimmed. Throws `Refused` when it is empty, longer than 200 characters or
 *  contains control characters. `label` begins the message, for example "The full name". */
export function parseName(label: string, value: string): string {
  const name = value.trim()
  if (name === '') throw new Refused(`${label} must not be empty.`)
  if (name.length > 200) throw new Refused(`${label} must be at most 200 characters long.`)
  if (/\p{Cc}/u.test(name)) throw new Refused(`${label} must not contain control characters.`)
  return name
}
