import type { Contract } from '../model/contract.ts'
import { HEADER, literal } from './typescript-text.ts'

/** generated/events.ts: what asyncapi.yaml says of each event type on offer, for use at run time. */
export function events(contract: Contract): string {
  const subscribable = contract.events.filter(({ isSubscribable }) => isSubscribable)
  const entries = subscribable.map(
    ({ type, summary, description, resourceType, dataSchema, example }) => [
      type,
      { name: type, summary, description, resourceType, dataSchema, example },
    ],
  )
  return `${HEADER}import type { EventPayloads, EventType } from './asyncapi.ts'

export interface EventTypeDescription<T extends EventType = EventType> {
  name: T
  summary: string
  description: string
  resourceType: EventPayloads[T]['resource']['type']
  /** JSON Schema draft 7 of \`data\`, without references. */
  dataSchema: { readonly [keyword: string]: unknown }
  /** A whole body. */
  example: EventPayloads[T]
}

/** What webhooks can be subscribed to, in the order of asyncapi.yaml. */
export const eventTypes: { readonly [T in EventType]: EventTypeDescription<T> } = ${literal(Object.fromEntries(entries))}
`
}
