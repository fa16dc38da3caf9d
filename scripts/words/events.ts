/** The words of openapi.yaml that describe events: `x-event-list` and `x-emits-when` of
 *  operations. */
import { isDeepStrictEqual } from 'node:util'
import type { Contract } from '../model/contract.ts'
import type { EventMessage } from '../model/events.ts'
import type { JsonObject } from '../model/json.ts'
import type { Operation } from '../model/operations.ts'
import { readWord } from './read.ts'
import { type Condition, meetsCondition, readRecordWords } from './records.ts'

/** `x-event-list`: the operation lists all events. The JSON Pointers lead into one event. */
export interface EventList {
  operation: Operation
  /** Pointer to the ID of the event. */
  id: string
  /** Pointer to the event type. */
  type: string
  /** Pointer to the ID of the record that the event is about. */
  resource: string
  /** Pointer to the data of the event. Its fields have the values of the record's fields with the
   *  same names. */
  data?: string
  /** Pointer to the time of the event. */
  time?: string
  /** Pointer to what an event `*.updated` changed: entries with `field`, `before` and `after`. Only the
   *  operation that returns one event has them. */
  changes?: string
  /** Entries of `changes` have only `field` if `before` or `after` is larger than this as JSON. */
  max_value_bytes?: number
  /** Pointer to the IDs of the deliveries. Only the operation that returns one event has them. */
  deliveries?: string
  /** The value of `sort` for the newest events first. */
  newest_first: string
}

/** An update emits the event if the update changes one of the fields `changes`, or if the updated
 *  record meets the condition `becomes` and the old record does not. */
interface EmitCondition {
  changes?: string[]
  becomes?: Condition
}

/** Undefined if the contract has no list of events. */
export function findEventList({ operations }: Contract): EventList | undefined {
  for (const operation of operations) {
    const words = readWord<Omit<EventList, 'operation'>>(operation.place, 'x-event-list')
    if (words !== undefined) return { operation, ...words }
  }
  return undefined
}

/** `x-emits-when`, by event type. An event without a condition is emitted by each change. */
export function readEmitConditions(operation: Operation): Record<string, EmitCondition> {
  return readWord(operation.place, 'x-emits-when') ?? {}
}

/** The events that a change emits about the changed record: the events of the operation that have
 *  the resource type of its first event. A change with `before` and `after` is an update: it
 *  emits only events whose condition it meets, and none if it changes no field except the time of
 *  the update. Any other change emits all of these events. */
export function listOwnEvents(
  contract: Contract,
  operation: Operation,
  { before, after }: { before: JsonObject | undefined; after: JsonObject | undefined },
): EventMessage[] {
  const declared = operation.emits.flatMap(
    (type) => contract.events.find((event) => event.type === type) ?? [],
  )
  const own = declared.filter(({ resourceType }) => resourceType === declared[0]?.resourceType)
  if (!before || !after) return own
  const { updated } = readRecordWords(contract, operation)
  const isSame = Object.keys(after).every(
    (name) => name === updated || isDeepStrictEqual(before[name], after[name]),
  )
  const conditions = readEmitConditions(operation)
  return isSame ? [] : own.filter(({ type }) => meetsEmitCondition(conditions[type], before, after))
}

function meetsEmitCondition(
  condition: EmitCondition | undefined,
  before: JsonObject,
  after: JsonObject,
): boolean {
  if (condition === undefined) return true
  const { changes = [], becomes } = condition
  return (
    changes.some((name) => before[name] !== after[name]) ||
    (becomes !== undefined && meetsCondition(after, becomes) && !meetsCondition(before, becomes))
  )
}
