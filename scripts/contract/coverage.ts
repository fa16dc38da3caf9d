/** Which of what the contract documents was seen: each status and each event of each operation. */
import type { EventType } from '../../generated/asyncapi.ts'
import { type OperationId, operations } from '../../generated/operations.ts'

export interface Cell {
  operation: OperationId
  kind: 'status' | 'event'
  /** Such as `404`, or `participant.updated`. */
  name: string
  /** How often. */
  seen: number
  /** Why it need not be seen; null if it must. */
  reason: string | null
}

export interface Coverage {
  sawStatus(operation: OperationId, status: number): void
  sawEvent(operation: OperationId, event: EventType): void
  hasSeenEvents(operation: OperationId): boolean
  cells(): Cell[]
}

/** What cannot be brought about from outside, or not each time. A deployed copy is only sent what any client could send. */
const UNREACHABLE: Record<number, string> = {
  409: 'needs a request that is still being worked on, or an export that is still being made',
  410: 'needs an export that is a week old',
  429: 'needs a rate limit that a run reaches',
  500: 'needs a mistake in the service',
  501: 'needs an operation without a handler',
  503: 'needs a database that is down',
}
const NO_RESTRICTED_KEY =
  'needs a Read Only key of a user without Finance permission: give it as --restricted-key'

export function newCoverage(
  ids: readonly OperationId[],
  { hasRestrictedKey }: { hasRestrictedKey: boolean },
): Coverage {
  const counts = new Map<string, number>()
  const key = (operation: OperationId, name: string | number): string => `${operation} ${name}`
  const count = (operation: OperationId, name: string | number): void => {
    counts.set(key(operation, name), (counts.get(key(operation, name)) ?? 0) + 1)
  }
  const seen = (operation: OperationId, name: string | number): number =>
    counts.get(key(operation, name)) ?? 0
  const reasonFor = (status: number): string | null =>
    status === 403 && !hasRestrictedKey ? NO_RESTRICTED_KEY : (UNREACHABLE[status] ?? null)
  return {
    sawStatus: count,
    sawEvent: count,
    hasSeenEvents: (id) => operations[id].emits.every((event) => seen(id, event) > 0),
    cells: () =>
      ids.flatMap((operation): Cell[] => [
        ...operations[operation].statuses.map((status): Cell => {
          return {
            operation,
            kind: 'status',
            name: String(status),
            seen: seen(operation, status),
            reason: reasonFor(status),
          }
        }),
        ...operations[operation].emits.map((event): Cell => {
          return {
            operation,
            kind: 'event',
            name: event,
            seen: seen(operation, event),
            reason: null,
          }
        }),
      ]),
  }
}

/** Neither seen nor excused. */
export function isMissing({ seen, reason }: Cell): boolean {
  return seen === 0 && reason === null
}
