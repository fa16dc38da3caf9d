/** Compares the whole state after a sequence with the model: every record, list, event and
 *  delivery. Other records of the account are left out. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import { listDeliveryHeaders } from '../../words/deliveries.ts'
import { findEventList } from '../../words/events.ts'
import { readListWords } from '../../words/lists.ts'
import { ContractBroken, show } from '../contract-broken.ts'
import type { Receiver } from '../receiver.ts'
import type { Run } from '../run.ts'
import { eventIdOf, SETTLING_MS, TIMEOUT_MS } from './deliveries.ts'
import { assertSame, EVENT_PAGE_SIZE, type ListedEvent, readEvents } from './events.ts'
import { ListUnderTest, MAX_PAGES } from './list-under-test.ts'
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
  if (receiver) await assertDeliveries(run, model, events, receiver)
}

/** Throws unless the list has each live record once, as a GET returns it, and no deleted one. */
async function assertListed(run: Run, model: RecordModel, kind: LinkedKind): Promise<void> {
  const words = readListWords(run.contract)
  if (kind.list === undefined || words === undefined) return
  const list = new ListUnderTest(run, { operation: kind.list, path: kind.list.path, words })
  const broken = (message: string) => list.broken('sequence', message)
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
  const list = findEventList(run.contract)
  const request = model.requests.at(-1)
  if (list === undefined || request === undefined) return []
  const ids = model.records.map(({ fields }) => String(fields.id))
  const { emittedBySystem } = run.contract
  const own: ListedEvent[] = []
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const events = await readEvents(run, list, page)
    own.push(
      ...events.filter(
        ({ type, resource }) => ids.includes(resource) && !emittedBySystem.includes(type),
      ),
    )
    if (own.length >= model.events.length || events.length < EVENT_PAGE_SIZE) break
  }
  assertSame(request, own, model.events)
  return own
}

async function assertDeliveries(
  { contract }: Run,
  model: RecordModel,
  events: ListedEvent[],
  receiver: Receiver,
): Promise<void> {
  const headers = listDeliveryHeaders(contract)
  const listAttempts = (event: ListedEvent) =>
    receiver.attempts.filter((attempt) => eventIdOf(headers, attempt) === event.id)
  for (const event of events)
    await receiver.waitFor((attempt) => eventIdOf(headers, attempt) === event.id, 1, TIMEOUT_MS)
  await delay(SETTLING_MS)
  const wrong = events.find((event) => listAttempts(event).length !== 1)
  const request = model.requests.at(-1)
  if (wrong && request)
    throw new ContractBroken(
      'sequence',
      request,
      `the event ${wrong.type} of ${wrong.resource} was delivered ${listAttempts(wrong).length} times`,
    )
}
