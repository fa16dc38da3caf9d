import type { Contract } from '../model/contract.ts'
import { listSentMessages } from '../model/events.ts'
import { type Finding, type Source, valueAt } from '../model/source.ts'

/** Every message belongs to a channel: generators of documents and clients start there. */
export function findEventsWithoutChannel(contract: Contract): Finding[] {
  const sent = listSentMessages(contract.sources, contract.asyncapi)
  return contract.events
    .filter(({ place }) => !sent.includes(valueAt(place.source.root, place.path)))
    .map(({ type, place }) => ({
      ...place,
      problem: `no channel sends ${type}: add it to the messages of one`,
    }))
}

/** The schema EventTypeName lists the subscribable events of asyncapi.yaml. */
export function findEventTypeMismatches({ sources, events }: Contract): Finding[] {
  const openapi = sources['openapi.yaml'] as Source
  const path = ['components', 'schemas', 'EventTypeName', 'enum']
  const listed = valueAt(openapi.root, path)
  if (!Array.isArray(listed)) return []
  const known = events.filter(({ isSubscribable }) => isSubscribable).map(({ type }) => type)
  const missing = known.filter((type) => !listed.includes(type))
  const unknown = listed.filter((type) => !known.includes(type))
  return [
    ...missing.map((type) => ({
      source: openapi,
      path,
      problem: `EventTypeName does not list ${type} of asyncapi.yaml: add it`,
    })),
    ...unknown.map((type) => ({
      source: openapi,
      path,
      problem: `EventTypeName lists ${type}, which asyncapi.yaml does not have: remove it`,
    })),
  ]
}
