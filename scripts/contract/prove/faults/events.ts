/** Faults of events, as the list of events shows them. */
import type { Contract } from '../../../model/contract.ts'
import type { JsonObject } from '../../../model/json.ts'
import { type EventList, findEventList, readEmitConditions } from '../../../words/events.ts'
import { readListWords } from '../../../words/lists.ts'
import type { ProxyHooks, ProxyRequest, ProxyResponse } from '../faulty-proxy.ts'
import { isFor, onBody, withOtherId } from '../hooks.ts'
import { faultsOf, firstResource, listResources, type SeededFault } from '../seeded-fault.ts'

type Change = (events: JsonObject[]) => JsonObject[]

const fault = faultsOf('events')

export function eventFaults(contract: Contract): SeededFault[] {
  const list = findEventList(contract)
  const items = readListWords(contract)?.items.slice(1)
  const resources = listResources(contract)
  const { create, update, remove } = firstResource(contract)
  if (!list || items === undefined) return []
  const changed = (change: Change): ProxyHooks =>
    onBody(list.operation, (page) => ({ ...page, [items]: change(page[items]) }))
  const conditional = resources
    .map((resource) => resource.update)
    .find((operation) =>
      Object.values(readEmitConditions(operation)).some(({ becomes }) => becomes),
    )
  const withForeign = resources
    .map((resource) => resource.remove)
    .find(({ emits }) => emits.length > 1)
  const typeOf = (event: JsonObject) => String(event[list.type.slice(1)])
  const [created = ''] = create.emits
  const [updated = ''] = update.emits
  return [
    fault(
      'does not emit an event',
      create,
      changed((events) => events.filter((event) => typeOf(event) !== created)),
    ),
    fault(
      'emits each event twice',
      create,
      changed((events) => events.flatMap((event) => [event, copyOf(event, list)])),
    ),
    fault(
      'emits the event of another type',
      update,
      changed((events) =>
        events.map((event) =>
          typeOf(event) === updated ? { ...event, [list.type.slice(1)]: created } : event,
        ),
      ),
    ),
    fault(
      'emits an event about another record',
      create,
      changed((events) =>
        events.map((event) => ({
          ...event,
          resource: { ...(event.resource as JsonObject), id: withOtherId(event.id) },
        })),
      ),
    ),
    fault(
      'emits an event for a refused request',
      update,
      emitting(
        { list, items, type: update.emits[0] },
        ({ status }, request) => isFor(update, request) && status >= 400,
      ),
    ),
    fault(
      'emits an event for an update that changes nothing',
      update,
      emitting(
        { list, items, type: update.emits[0] },
        ({ status }, request) => isFor(update, request) && status === 200 && request.body === '{}',
      ),
    ),
    fault(
      'emits an event for a repeated request',
      create,
      emitting(
        { list, items, type: create.emits[0] },
        ({ headers }) => headers['idempotent-replayed'] !== undefined,
      ),
    ),
    fault(
      'emits an event for a deleted record',
      remove,
      emitting(
        { list, items, type: remove.emits[0] },
        ({ status }, request) => isFor(remove, request) && status === 404,
      ),
    ),
    ...(conditional
      ? [
          fault(
            'emits a conditional event with each update',
            conditional,
            changed((events) =>
              events.flatMap((event) => {
                const [, other = ''] = conditional.emits
                return typeOf(event) === conditional.emits[0]
                  ? [{ ...copyOf(event, list), [list.type.slice(1)]: other }, event]
                  : [event]
              }),
            ),
          ),
        ]
      : []),
    ...(withForeign
      ? [
          fault(
            'emits no event for the records that a deletion changes',
            withForeign,
            changed((events) => events.filter((event) => typeOf(event) !== withForeign.emits[1])),
          ),
        ]
      : []),
  ]
}

function copyOf(event: JsonObject, { id }: EventList): JsonObject {
  return { ...event, [id.slice(1)]: withOtherId(event[id.slice(1)]) }
}

/** Adds one more event of the type to the list after each response that fits: a copy of the newest
 *  one. */
function emitting(
  { list, items, type }: { list: EventList; items: string; type: string | undefined },
  fits: (response: ProxyResponse, request: ProxyRequest) => boolean,
): ProxyHooks {
  let due = 0
  const added: JsonObject[] = []
  return {
    changeResponse(response, request) {
      if (fits(response, request)) due += 1
      if (response.status !== 200 || !isFor(list.operation, request)) return {}
      const page = JSON.parse(response.body)
      const [newest] = page[items]
      for (; due > 0 && newest; due -= 1)
        added.unshift({
          ...newest,
          [list.id.slice(1)]: crypto.randomUUID(),
          [list.type.slice(1)]: type,
        })
      return { body: JSON.stringify({ ...page, [items]: [...added, ...page[items]] }) }
    },
  }
}
