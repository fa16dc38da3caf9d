/** What an update may change and does change. */
import { isDeepStrictEqual } from 'node:util'
import { InvalidInput } from '../errors.ts'
import { withStoredIds } from './references.ts'

/** The given fields whose value is not the record's already, with ids as they are stored; undefined when there are none. Times are compared
 *  as instants. */
export function changesOf<T extends object>(
  current: T,
  given: Partial<Record<keyof T, unknown>>,
): Partial<T> | undefined {
  const changes = Object.entries(withStoredIds(given)).filter(
    ([name, value]) => !isSame(name, current[name as keyof T], value),
  )
  return changes.length === 0 ? undefined : (Object.fromEntries(changes) as Partial<T>)
}

function isSame(name: string, current: unknown, given: unknown): boolean {
  if (name.endsWith('_at') && typeof current === 'string' && typeof given === 'string')
    return Date.parse(current) === Date.parse(given)
  // Through JSON, as it would be stored: there -0 is 0.
  return isDeepStrictEqual(current, JSON.parse(JSON.stringify(given)))
}

/** The states that each state can become. None: it is final. */
export type Moves<Status extends string> = Record<Status, readonly Status[]>

/** Throws InvalidInput on `status` for a move that is not possible. */
export function assertMove<Status extends string>(
  moves: Moves<Status>,
  from: Status,
  to: Status | undefined,
): void {
  if (to === undefined || to === from || moves[from].includes(to)) return
  const possible =
    moves[from].length === 0
      ? 'which is final'
      : `which can only become ${moves[from].join(' or ')}`
  throw new InvalidInput({ status: [`cannot become ${to}: it is ${from}, ${possible}.`] })
}

/** A record's version moves on with each change, also within one millisecond or after a clock was set back. */
export function nextUpdatedAt(current: { updated_at: string }, now: Date): number {
  return Math.max(now.getTime(), Date.parse(current.updated_at) + 1)
}
