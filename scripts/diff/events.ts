import type { EventMessage } from '../model/events.ts'
import {
  type Change,
  compareSchemaParts,
  type Editions,
  type RuleId,
  readSchemaDeprecation,
  type Subject,
  toChange,
} from './change.ts'

export function compareEvents(editions: Editions): Change[] {
  const { base, revision } = editions
  const changes: Change[] = []
  for (const old of base.events)
    if (!revision.events.some(({ type }) => type === old.type))
      changes.push(removedEvent({ ...editions, concerns: old.type }, old))
  for (const now of revision.events) {
    const subject = { ...editions, concerns: now.type }
    const old = base.events.find(({ type }) => type === now.type)
    if (old) changes.push(...compareEvent(subject, old, now))
    else
      changes.push(toChange(subject, 'event-added', now.place, `the event ${now.type}`, 'is new'))
  }
  return changes
}

function removedEvent(subject: Subject, event: EventMessage): Change {
  const place = event.place
  const name = `the event ${event.type}`
  const { isDeprecated, sunset } = readSchemaDeprecation(place)
  if (!isDeprecated)
    return toChange(subject, 'event-removed-without-deprecation', place, name, 'is gone', true)
  if (sunset === undefined || sunset > subject.today)
    return toChange(
      subject,
      'event-removed-before-sunset',
      place,
      name,
      `is gone before its sunset: ${sunset ?? 'it has none'}`,
      true,
    )
  return toChange(
    subject,
    'event-removed-with-deprecation',
    place,
    name,
    `is gone, after its sunset of ${sunset}`,
    true,
  )
}

function compareEvent(subject: Subject, old: EventMessage, now: EventMessage): Change[] {
  const name = `the event ${now.type}`
  const changes: Change[] = []
  const add = (id: RuleId, what: string): void =>
    void changes.push(toChange(subject, id, now.place, name, what))
  if (old.isSubscribable && !now.isSubscribable)
    add('event-not-subscribable', 'cannot be subscribed to')
  if (!old.isSubscribable && now.isSubscribable) add('event-subscribable', 'can be subscribed to')
  if (
    !readSchemaDeprecation(old.place).isDeprecated &&
    readSchemaDeprecation(now.place).isDeprecated
  )
    add('event-deprecated', 'is deprecated')
  return [
    ...changes,
    ...compareSchemaParts(
      subject,
      name,
      old.payload,
      now.payload,
      'response',
      'event-payload',
      'event-property',
    ),
    ...compareSchemaParts(
      subject,
      `the headers of ${name}`,
      old.headers,
      now.headers,
      'response',
      'event-headers',
      'event-header',
    ),
  ]
}
