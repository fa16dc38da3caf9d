/** Counts how often each documented status, event and optional field of each operation occurred. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { Refusals } from './refusals.ts'
import { hasField, listOptionalFields } from './response-fields.ts'

export interface Cell {
  operation: string
  kind: 'status' | 'event' | 'field'
  /** For example `404`, `participant.updated` or `data.*.note`. */
  name: string
  /** The number of occurrences. */
  seen: number
  /** Why it may stay unseen; null if it must occur. */
  reason: string | null
}

/** An operation that was not tested. */
export interface Untested {
  operation: string
  reason: string
}

export interface Coverage {
  sawStatus(operation: string, status: number): void
  sawEvent(operation: string, event: string): void
  hasSeenEvents(operation: Operation): boolean
  /** The body of a successful response. */
  sawBody(operation: string, body: unknown): void
  /** Reasons for which valid data was refused. */
  refusals: Refusals
  /** The operation was not tested. */
  skip(operation: string, reason: string): void
  untested(): Untested[]
  /** Those of the tested operations. */
  cells(): Cell[]
}

/** Statuses that requests of a client cannot cause reliably. */
const UNREACHABLE: Record<number, string> = {
  409: 'needs a request or an export that is in progress',
  410: 'needs an export that is one week old',
  429: 'needs a lower rate limit',
  500: 'needs a defect in the service',
  501: 'needs an operation without a handler',
  503: 'needs an unavailable database',
}
const NO_RESTRICTED_KEY =
  'needs a Read Only key of a user without the Finance permission: use --restricted-key'

export function newCoverage(
  contract: Contract,
  ids: readonly string[],
  { hasRestrictedKey }: { hasRestrictedKey: boolean },
): Coverage {
  const counts = new Map<string, number>()
  const key = (operation: string, name: string | number): string => `${operation} ${name}`
  const count = (operation: string, name: string | number): void => {
    counts.set(key(operation, name), (counts.get(key(operation, name)) ?? 0) + 1)
  }
  const seen = (operation: string, name: string | number): number =>
    counts.get(key(operation, name)) ?? 0
  const reasonFor = (status: number): string | null =>
    status === 403 && !hasRestrictedKey ? NO_RESTRICTED_KEY : (UNREACHABLE[status] ?? null)
  const tested = contract.operations.filter(({ id }) => ids.includes(id))
  const fields = new Map(
    contract.operations.map((operation) => [operation.id, listOptionalFields(contract, operation)]),
  )
  const untested = new Map<string, string>()
  return {
    refusals: new Refusals(),
    skip: (operation, reason) => void untested.set(operation, reason),
    untested: () => [...untested].map(([operation, reason]) => ({ operation, reason })),
    sawBody(operation, body) {
      for (const field of fields.get(operation) ?? [])
        if (hasField(body, field)) count(operation, `field ${field}`)
    },
    sawStatus: count,
    sawEvent: count,
    hasSeenEvents: ({ id, emits }) => emits.every((event) => seen(id, event) > 0),
    cells: () =>
      tested
        .filter(({ id }) => !untested.has(id))
        .flatMap(({ id: operation, responses, emits }): Cell[] => [
          ...responses.map(
            ({ status }): Cell => ({
              operation,
              kind: 'status',
              name: String(status),
              seen: seen(operation, status),
              reason: reasonFor(status),
            }),
          ),
          ...emits.map(
            (event): Cell => ({
              operation,
              kind: 'event',
              name: event,
              seen: seen(operation, event),
              reason: null,
            }),
          ),
          ...(fields.get(operation) ?? []).map(
            (field): Cell => ({
              operation,
              kind: 'field',
              name: field,
              seen: seen(operation, `field ${field}`),
              reason: null,
            }),
          ),
        ]),
  }
}

/** Must occur, and did not. */
export function isMissing({ seen, reason }: Cell): boolean {
  return seen === 0 && reason === null
}

export function describeMissing({ kind, name }: Cell): string {
  return `the ${kind} ${name} is documented, but never occurred`
}

/** Did not occur, and need not. */
export function isExcused({ seen, reason }: Cell): boolean {
  return seen === 0 && reason !== null
}
