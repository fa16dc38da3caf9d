/** Counts how often each documented status, event and optional field of each operation occurred. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { Refusals } from './refusals.ts'
import { hasField, listOptionalFields } from './response-fields.ts'

/** A documented status, event or optional field: a cell of the matrix in the report. */
export interface Cell {
  operation: string
  kind: 'status' | 'event' | 'field'
  /** For example `404`, `participant.updated` or `data.*.note`. */
  name: string
  /** The number of occurrences. */
  seen: number
  /** Why the cell need not occur. Null if it must occur. */
  reason: string | null
}

/** An operation that was not tested. */
export interface Untested {
  operation: string
  reason: string
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

export class Coverage {
  /** Refusals of data that the schemas permit. */
  readonly refusals = new Refusals()
  readonly #operations: Operation[]
  /** The optional fields of the response, by operation. */
  readonly #fields: Map<string, string[]>
  readonly #hasRestrictedKey: boolean
  readonly #counts = new Map<string, number>()
  readonly #skipped = new Map<string, string>()

  /** `ids`: the operations to test. */
  constructor(
    contract: Contract,
    ids: readonly string[],
    { hasRestrictedKey }: { hasRestrictedKey: boolean },
  ) {
    this.#operations = contract.operations.filter(({ id }) => ids.includes(id))
    this.#fields = new Map(
      this.#operations.map((operation) => [operation.id, listOptionalFields(contract, operation)]),
    )
    this.#hasRestrictedKey = hasRestrictedKey
  }

  sawStatus(operation: string, status: number): void {
    this.#count(operation, 'status', String(status))
  }

  sawEvent(operation: string, event: string): void {
    this.#count(operation, 'event', event)
  }

  /** Counts the optional fields in the body of a successful response. */
  sawBody(operation: string, body: unknown): void {
    for (const field of this.#fields.get(operation) ?? [])
      if (hasField(body, field)) this.#count(operation, 'field', field)
  }

  #count(operation: string, kind: Cell['kind'], name: string): void {
    const key = `${operation} ${kind} ${name}`
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
  }

  hasSeenAllEvents({ id, emits }: Operation): boolean {
    return emits.every((event) => this.#cell(id, 'event', event).seen > 0)
  }

  /** Notes that the operation is not tested. */
  skip(operation: string, reason: string): void {
    this.#skipped.set(operation, reason)
  }

  listUntested(): Untested[] {
    return [...this.#skipped].map(([operation, reason]) => ({ operation, reason }))
  }

  /** The cells of the operations that were tested. */
  listCells(): Cell[] {
    return this.#operations
      .filter(({ id }) => !this.#skipped.has(id))
      .flatMap(({ id, responses, emits }) => [
        ...responses.map(({ status }) => ({
          ...this.#cell(id, 'status', String(status)),
          reason: this.#reasonFor(status),
        })),
        ...emits.map((event) => this.#cell(id, 'event', event)),
        ...(this.#fields.get(id) ?? []).map((field) => this.#cell(id, 'field', field)),
      ])
  }

  #cell(operation: string, kind: Cell['kind'], name: string): Cell {
    const seen = this.#counts.get(`${operation} ${kind} ${name}`) ?? 0
    return { operation, kind, name, seen, reason: null }
  }

  #reasonFor(status: number): string | null {
    if (status === 403 && !this.#hasRestrictedKey) return NO_RESTRICTED_KEY
    return UNREACHABLE[status] ?? null
  }
}

/** Whether the cell must occur, but did not. */
export function isMissing({ seen, reason }: Cell): boolean {
  return seen === 0 && reason === null
}

export function describeMissing({ kind, name }: Cell): string {
  return `the ${kind} ${name} is documented, but never occurred`
}

/** Whether the cell did not occur, and need not. */
export function isExcused({ seen, reason }: Cell): boolean {
  return seen === 0 && reason !== null
}
