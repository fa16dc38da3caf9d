/** Updates: which fields change, which status may follow, and the new version. */
import { isDeepStrictEqual } from 'node:util'
import { InvalidInput } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import { withStoredIds } from './references.ts'

/** The fields whose value differs from the record, with IDs as they are stored. Undefined: nothing
 *  changes. Times are compared as instants. */
export function findChanges<T extends object>(
  current: T,
  input: Partial<Record<keyof T, unknown>>,
): Partial<T> | undefined {
  const changes = Object.entries(withStoredIds(input)).filter(
    ([name, value]) => !isSame(name, current[name as keyof T], value),
  )
  return changes.length === 0 ? undefined : (Object.fromEntries(changes) as Partial<T>)
}

/** A changed field, as events show it. */
export type FieldChange = components['schemas']['EventChange']

/** The changes of an event are stored as long as the event, so large values would fill the disk. */
const MAX_VALUE_BYTES = 2048

/** The fields in which two versions of a record differ, except `updated_at`, which always does. Leaves out
 *  the values of a field if one of them is larger than `MAX_VALUE_BYTES` as JSON. */
export function listFieldChanges<T extends object>(before: T, after: T): FieldChange[] {
  return Object.entries(after).flatMap(([field, value]) => {
    const old: unknown = before[field as keyof T]
    if (field === 'updated_at' || isDeepStrictEqual(old, value)) return []
    return [isLarge(old) || isLarge(value) ? { field } : { field, before: old, after: value }]
  })
}

function isLarge(value: unknown): boolean {
  return Buffer.byteLength(JSON.stringify(value)) > MAX_VALUE_BYTES
}

function isSame(name: string, current: unknown, next: unknown): boolean {
  if (name.endsWith('_at') && typeof current === 'string' && typeof next === 'string')
    return Date.parse(current) === Date.parse(next)
  // JSON is the stored form, in which -0 is 0.
  return isDeepStrictEqual(current, JSON.parse(JSON.stringify(next)))
}

/** The statuses that can follow each status. An empty list: the status is final. */
export type Transitions<Status extends string> = Record<Status, readonly Status[]>

/** Throws `InvalidInput` for the field `status` when `to` cannot follow `from`. If `to` is
 *  undefined, the status stays. */
export function assertTransition<Status extends string>(
  transitions: Transitions<Status>,
  from: Status,
  to: Status | undefined,
): void {
  if (to === undefined || to === from || transitions[from].includes(to)) return
  const possible =
    transitions[from].length === 0
      ? 'which is final'
      : `which can only become ${transitions[from].join(' or ')}`
  throw new InvalidInput({ status: [`cannot become ${to}: it is ${from}, ${possible}.`] })
}

/** `updated_at` is the version of a record, so every update makes it later, even within one
 *  millisecond or after the clock was set back. */
export function nextUpdatedAt(current: { updated_at: string }, now: Date): number {
  return Math.max(now.getTime(), Date.parse(current.updated_at) + 1)
}
