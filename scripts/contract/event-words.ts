/** The words of openapi.yaml that describe events: `x-event-list` and `x-emits-when` of
 *  operations. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { valueAt } from '../model/source.ts'
import { hasOneOf } from './record-words.ts'

/** `x-event-list`: the operation lists all events. JSON Pointers lead into an event. */
export interface EventList {
  operation: Operation
  id: string
  /** Pointer to the event type. */
  type: string
  /** Pointer to the ID of the record that the event is about. */
  resource: string
  /** The value of `sort` for the newest events first. */
  newest_first: string
}

/** When an update emits the event: if it changes one of the fields, or if they become one of the
 *  values. */
export interface EmitCondition {
  changes?: string[]
  becomes?: Record<string, unknown[]>
}

/** Undefined if the contract has no list of events. */
export function findEventList({ operations }: Contract): EventList | undefined {
  for (const operation of operations) {
    const words = readWord<Omit<EventList, 'operation'>>(operation, 'x-event-list')
    if (words !== undefined) return { operation, ...words }
  }
  return undefined
}

/** `x-emits-when`, by event type. An event without a condition is emitted by each change. */
export function readEmitConditions(operation: Operation): Record<string, EmitCondition> {
  return readWord(operation, 'x-emits-when') ?? {}
}

type Json = Record<string, unknown>

/** Whether the change emits the event. */
export function meetsCondition(
  condition: EmitCondition | undefined,
  before: Json,
  after: Json,
): boolean {
  if (condition === undefined) return true
  const { changes = [], becomes } = condition
  return (
    changes.some((name) => before[name] !== after[name]) ||
    (becomes !== undefined && hasOneOf(after, becomes) && !hasOneOf(before, becomes))
  )
}

function readWord<T>({ place }: Operation, word: string): T | undefined {
  return valueAt(place.source.root, [...place.path, word]) as T | undefined
}
