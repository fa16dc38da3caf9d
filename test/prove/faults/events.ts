/** Seeded faults of events. To simulate them, the proxy changes the responses of the event list. */
import { findItemOperation } from '../../../scripts/contract/record-kinds.ts'
import type { Contract } from '../../../scripts/model/contract.ts'
import type { JsonObject } from '../../../scripts/model/json.ts'
import { type EventList, findEventList } from '../../../scripts/words/events.ts'
import { readListWords } from '../../../scripts/words/lists.ts'
import { readWord } from '../../../scripts/words/read.ts'
import type { ProxyHooks, ProxyRequest, ProxyResponse } from '../faulty-proxy.ts'
import { isFor, onBody, withOtherId } from '../hooks.ts'
import { assertFound, faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

const faults = faultFactory('events')

export function eventFaults(contract: Contract): SeededFault[] {
  const list = assertFound(findEventList(contract))
  const items = assertFound(readListWords(contract)).items.slice(1)
  const { create, update, remove } = firstResource(contract)
  const onEvents = (change: (events: JsonObject[]) => JsonObject[]): ProxyHooks =>
    onBody(list.operation, (page) => ({ ...page, [items]: change(page[items]) }))
  const emitMore = (type: string, fits: Fits) => addEvents({ list, items, type }, fits)
  const { update: conditional } = firstResource(contract, ({ update: { place } }) => {
    const conditions = readWord<Record<string, { becomes?: object }>>(place, 'x-emits-when')
    return Object.values(conditions ?? {}).some(({ becomes }) => becomes !== undefined)
  })
  const { remove: removeOthers } = firstResource(contract, (one) => one.remove.emits.length > 1)
  const typeField = list.type.slice(1)
  const [created = ''] = create.emits
  const [updated = ''] = update.emits
  const [removed = ''] = remove.emits
  return [
    ...faults(create, {
      'does not emit an event': onEvents((events) =>
        events.filter((event) => event[typeField] !== created),
      ),
      'emits each event twice': onEvents((events) =>
        events.flatMap((event) => [event, copyOf(event, list)]),
      ),
      'emits an event about another record': onEvents((events) =>
        events.map((event) => ({
          ...event,
          resource: { ...(event.resource as JsonObject), id: withOtherId(event.id) },
        })),
      ),
      'emits an event with another time': onEvents((events) =>
        events.map((event) => ({
          ...event,
          [assertFound(list.time).slice(1)]: '2020-01-01T00:00:00Z',
        })),
      ),
      'emits an event for a repeated request': emitMore(
        created,
        ({ headers }) => headers['idempotent-replayed'] !== undefined,
      ),
    }),
    ...faults(update, {
      'emits the event of another type': onEvents((events) =>
        events.map((event) =>
          event[typeField] === updated ? { ...event, [typeField]: created } : event,
        ),
      ),
      'has other changes than the update': onBody(
        assertFound(findItemOperation(contract, 'get', list.operation.path)),
        (event) => ({ ...event, changes: event.changes?.slice(1) ?? null }),
      ),
      'emits an event for a refused request': emitMore(
        updated,
        ({ status }, request) => isFor(update, request) && status >= 400,
      ),
      'emits an event for an update that changes nothing': emitMore(
        updated,
        ({ status }, request) => isFor(update, request) && status === 200 && request.body === '{}',
      ),
    }),
    ...faults(remove, {
      'emits an event for a deleted record': emitMore(
        removed,
        ({ status }, request) => isFor(remove, request) && status === 404,
      ),
    }),
    ...faults(conditional, {
      'emits a conditional event with each update': onEvents((events) =>
        events.flatMap((event) => {
          const [first, other = ''] = conditional.emits
          const more = { ...copyOf(event, list), [typeField]: other }
          return event[typeField] === first ? [more, event] : [event]
        }),
      ),
    }),
    ...faults(removeOthers, {
      'emits no event for the records that a deletion changes': onEvents((events) =>
        events.filter((event) => event[typeField] !== removeOthers.emits[1]),
      ),
    }),
  ]
}

function copyOf(event: JsonObject, { id }: EventList): JsonObject {
  return { ...event, [id.slice(1)]: withOtherId(event[id.slice(1)]) }
}

type Fits = (response: ProxyResponse, request: ProxyRequest) => boolean

/** After each response that fits, the event list has one more event: a copy of the newest event
 *  with another ID and the type `type`. */
function addEvents(
  { list, items, type }: { list: EventList; items: string; type: string },
  fits: Fits,
): ProxyHooks {
  let missingCount = 0
  const added: JsonObject[] = []
  return {
    changeResponse(response, request) {
      if (fits(response, request)) missingCount += 1
      if (response.status !== 200 || !isFor(list.operation, request)) return {}
      const page = JSON.parse(response.body)
      const [newest] = page[items]
      for (; missingCount > 0 && newest; missingCount -= 1)
        added.unshift({
          ...newest,
          [list.id.slice(1)]: crypto.randomUUID(),
          [list.type.slice(1)]: type,
        })
      return { body: JSON.stringify({ ...page, [items]: [...added, ...page[items]] }) }
    },
  }
}
