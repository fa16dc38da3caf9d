/** Compares the whole state after a sequence with the model: every record, list, event and
 *  delivery. Other records of the account are left out. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../../model/json.ts'
import { findEventList } from '../../../words/events.ts'
import { readListWords } from '../../../words/lists.ts'
import { show } from '../../contract-broken.ts'
import type { Receiver } from '../../deliveries/receiver.ts'
import type { Run } from '../../run.ts'
import { assertDeliveredOnce } from '../deliveries.ts'
import { assertEmitted, EVENT_PAGE_SIZE, type ListedEvent, readEvents } from '../events.ts'
import { ListUnderTest, MAX_PAGES } from '../lists/list-under-test.ts'
import type { LinkedKind } from './sequence-kinds.ts'
import type { RecordModel } from './sequence-model.ts'

/** `receiver` gets the deliveries of the account. Without it, no delivery is expected. */
export async function assertEndState(
  run: Run,
  model: RecordModel,
  receiver?: Receiver,
): Promise<void> {
  for (const record of model.records) await model.verify(record)
  for (const kind of new Set(model.records.map((record) => record.kind)))
    await assertListed(run, model, kind)
  const events = await assertEvents(run, model)
  const request = model.requests.at(-1)
  if (receiver && request) await assertDeliveredOnce(run, request, events, receiver)
}

/** Throws unless the list has each live record once, as a GET returns it, and no deleted one. */
async function assertListed(run: Run, model: RecordModel, kind: LinkedKind): Promise<void> {
  if (kind.list === undefined || readListWords(run.contract) === undefined) return
  const list = new ListUnderTest(run, kind.list)
  const broken = (message: string) => list.broken(message, 'sequence')
  await list.limitToNewest()
  const entries = (await list.readAll()) as JsonObject[]
  for (const record of model.records.filter((one) => one.kind === kind)) {
    const found = entries.filter(({ id }) => id === record.fields.id)
    const expected = record.isDeleted ? 0 : 1
    if (found.length !== expected)
      throw broken(`the list has ${show(record.fields.id)} ${found.length} times, not ${expected}`)
    for (const [name, value] of Object.entries(found[0] ?? {}))
      if (!isDeepStrictEqual(value, record.fields[name]))
        throw broken(`the list has ${name} ${show(value)}, not ${show(record.fields[name])}`)
  }
}

/** Throws unless each step has emitted its events. Returns the events. */
async function assertEvents(run: Run, model: RecordModel): Promise<ListedEvent[]> {
  const request = model.requests.at(-1)
  if (findEventList(run.contract) === undefined || request === undefined) return []
  const ids = model.records.map(({ fields }) => String(fields.id))
  const { emittedBySystem } = run.contract
  // By ID: a new event shifts the pages, so that two pages can have the same event.
  const own = new Map<string, ListedEvent>()
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const events = await readEvents(run, page)
    for (const event of events)
      if (ids.includes(event.resource) && !emittedBySystem.includes(event.type))
        own.set(event.id, event)
    if (own.size >= model.events.length || events.length < EVENT_PAGE_SIZE) break
  }
  const emitted = [...own.values()]
  assertEmitted(request, emitted, model.events)
  return emitted
}
