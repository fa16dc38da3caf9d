/** Somebody asked for what cannot be done. The message says why, in words for them, and holds no secret. */
export class Refused extends Error {
  override name = 'Refused'
}

/** A name that people read, trimmed. Throws `Refused`, calling it `what`. */
export function assertName(what: string, value: string): string {
  const name = value.trim()
  if (name === '') throw new Refused(`${what} must not be empty`)
  if (name.length > 200) throw new Refused(`${what} must be at most 200 characters long`)
  if (/\p{Cc}/u.test(name)) throw new Refused(`${what} must not hold control characters`)
  return name
}
