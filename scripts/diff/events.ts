import type { Contract } from '../model/contract.ts'
import type { EventMessage } from '../model/events.ts'
import { listSentMessages } from '../model/events.ts'
import { type Place, valueAt } from '../model/source.ts'
import {
  type Change,
  compareSchemaParts,
  compareWordsAt,
  type Editions,
  type Part,
  type RuleId,
  type Subject,
  toChange,
  toRemoval,
} from './change.ts'
import { compareDeprecations } from './deprecations.ts'

export function compareEvents(editions: Editions): Change[] {
  const { base, revision } = editions
  const removed = base.events.filter(
    (old) => !revision.events.some(({ type }) => type === old.type),
  )
  return [
    ...removed.map((old) => toRemoval({ ...editions, concerns: old.type }, toPart(old), 'event')),
    ...revision.events.flatMap((now) => {
      const subject = { ...editions, concerns: now.type }
      const old = base.events.find(({ type }) => type === now.type)
      return old
        ? compareEvent(subject, old, now)
        : [toChange(subject, toPart(now), 'event-added', 'is new')]
    }),
  ]
}

const toPart = ({ type, place }: EventMessage): Part => ({ name: `the event ${type}`, place })

function compareEvent(subject: Subject, old: EventMessage, now: EventMessage): Change[] {
  const part = toPart(now)
  const changes: Change[] = []
  const add = (id: RuleId, what: string): void =>
    void changes.push(toChange(subject, part, id, what))
  if (old.isSubscribable && !now.isSubscribable)
    add('event-not-subscribable', 'cannot be subscribed to')
  if (!old.isSubscribable && now.isSubscribable) add('event-subscribable', 'can be subscribed to')
  const { base, revision } = subject
  const [wasSent, isSent] = [isOnChannel(base, old), isOnChannel(revision, now)]
  if (wasSent && !isSent) add('event-removed-from-channel', 'is sent on no channel')
  if (!wasSent && isSent) add('event-added-to-channel', 'is sent on a channel')
  const [wasBySystem, isBySystem] = [base, revision].map(({ emittedBySystem }) =>
    emittedBySystem.includes(now.type),
  )
  if (wasBySystem && !isBySystem && now.isSubscribable)
    add('event-not-emitted-by-system', 'is not emitted by the system')
  if (!wasBySystem && isBySystem && old.isSubscribable)
    add('event-emitted-by-system', 'is emitted by the system')
  for (const [change, what] of compareDeprecations(old.place, now.place))
    add(`event-${change}`, what)
  const payload = { name: part.name, old: old.payload, now: now.payload }
  const headers = { name: `the headers of ${part.name}`, old: old.headers, now: now.headers }
  return [
    ...changes,
    ...compareWordsAt(subject, 'each delivery', deliveryPlace(base), deliveryPlace(revision)),
    ...compareSchemaParts(subject, 'eventPayload', payload),
    ...compareSchemaParts(subject, 'eventHeaders', headers),
  ]
}

/** The operation of asyncapi.yaml whose words describe the attempts of a delivery. */
function deliveryPlace({ asyncapi }: Contract): Place {
  const operations = Object.entries(valueAt(asyncapi.root, ['operations']) ?? {})
  const words = ['x-retry-seconds', 'x-timeout-seconds']
  const hasWord = (each: unknown) => words.some((word) => valueAt(each, [word]) !== undefined)
  const [name = ''] = operations.find(([, each]) => hasWord(each)) ?? []
  return { source: asyncapi, path: ['operations', name] }
}

function isOnChannel(contract: Contract, { place }: EventMessage): boolean {
  return listSentMessages(contract.sources, contract.asyncapi).includes(
    valueAt(place.source.root, place.path),
  )
}
