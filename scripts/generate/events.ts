import type { Contract } from '../model/contract.ts'
import { HEADER, literal } from './typescript-text.ts'

/** generated/events.ts: the subscribable event types of asyncapi.yaml as data. */
export function renderEvents(contract: Contract): string {
  const subscribable = contract.events.filter(({ isSubscribable }) => isSubscribable)
  const entries = subscribable.map(
    ({ type, summary, description, resourceType, dataSchema, example }) => [
      type,
      { name: type, summary, description, resourceType, dataSchema, example },
    ],
  )
  const table = literal(Object.fromEntries(entries))
  const operational = contract.events
    .filter(({ isOperational }) => isOperational)
    .map(({ type, resourceType, description }) => [type, { resourceType, description }])
  return `${HEADER}import type { EventPayloads, EventType, OperationalType } from './asyncapi.ts'

export interface EventTypeDescription<T extends EventType = EventType> {
  name: T
  summary: string
  description: string
  resourceType: EventPayloads[T]['resource']['type']
  /** JSON Schema draft 7 of \`data\`, without references. */
  dataSchema: { readonly [keyword: string]: unknown }
  /** The body of a delivery. */
  example: EventPayloads[T]
}

/** The subscribable event types in the order of asyncapi.yaml. */
export const eventTypes: { readonly [T in EventType]: EventTypeDescription<T> } = ${table}

/** The event types that webhooks subscribe to by name alone. */
export const operationalTypes: {
  readonly [T in OperationalType]: { resourceType: EventPayloads[T]['resource']['type']; description: string }
} = ${literal(Object.fromEntries(operational))}
`
}
