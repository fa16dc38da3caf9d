import type { Contract } from '../model/contract.ts'
import { listSentMessages } from '../model/events.ts'
import { type Finding, type Source, valueAt } from '../model/source.ts'

/** Events that no channel sends. Generators of documents and clients start at the channels, so they
 *  miss such events. */
export function findEventsWithoutChannel(contract: Contract): Finding[] {
  const sent = listSentMessages(contract.sources, contract.asyncapi)
  return contract.events
    .filter(({ place }) => !sent.includes(valueAt(place.source.root, place.path)))
    .map(({ type, place }) => ({
      ...place,
      problem: `no channel sends ${type}: add it to the messages of a channel`,
    }))
}

/** Differences between the schema EventTypeName and the subscribable events of asyncapi.yaml. */
export function findEventTypeMismatches({ sources, events }: Contract): Finding[] {
  const openapi = sources['openapi.yaml'] as Source
  const path = ['components', 'schemas', 'EventTypeName', 'enum']
  const listed = valueAt(openapi.root, path)
  if (!Array.isArray(listed)) return []
  const subscribable = events.filter((event) => event.isSubscribable).map(({ type }) => type)
  const missing = subscribable.filter((type) => !listed.includes(type))
  const unknown = listed.filter((type) => !subscribable.includes(type))
  return [
    ...missing.map((type) => ({
      source: openapi,
      path,
      problem: `EventTypeName does not list ${type} of asyncapi.yaml: add it`,
    })),
    ...unknown.map((type) => ({
      source: openapi,
      path,
      problem: `EventTypeName lists ${type}, no subscribable event of asyncapi.yaml: remove it`,
    })),
  ]
}
