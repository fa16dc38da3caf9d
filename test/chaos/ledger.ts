/** Compares what was acknowledged with what is on record, and what is on record with what the receivers got. */
import type { Cluster } from './cluster.ts'
import type { Fault, FaultKind } from './faults.ts'
import { keyOf, type Load } from './load.ts'
import { type Arrival, type ChaosReceiver, digestOf } from './receivers.ts'

/** Attempts that one process may hold at the moment that it is hit. */
export const MAX_REPEATS_PER_ENGINE = 512

export interface Audit {
  acknowledged: number
  events: number
  deliveries: number
  delivered: number
  /** Deliveries that no receiver confirmed, or acknowledged changes without an event. */
  missing: number
  attempts: Record<string, number>
  /** POSTs whose result was never stored, by the fault that they were in flight at. */
  repeated: Partial<Record<FaultKind, number>>
  /** The most of one fault. */
  mostRepeated: number
  unexplained: number
  /** From the fault until an attempt that it orphaned was made again, in milliseconds. On the embedded default, from when the node was ready
   *  again. */
  longestOrphanMs: number
  /** Of those, when nothing else was wrong meanwhile. */
  longestUndisturbedOrphanMs: number
  /** From the commit of an event until the POST that was answered with 2xx, by receiver. */
  slowestDeliveryMs: Record<string, number>
  /** What should not be, a sentence each. */
  wrong: string[]
}

export interface Books {
  cluster: Cluster
  load: Pick<Load, 'acknowledged'>
  faults: Fault[]
  /** By the id of their webhooks. */
  receivers: Map<string, ChaosReceiver>
}

interface EventRow {
  id: string
  event_type: string
  resource_id: string
}

interface DeliveryRow {
  id: string
  event_id: string
  webhook_id: string
  event_type: string
  state: string
  failure_reason: string | null
  body: Buffer
  created_at: number
}

interface AttemptRow {
  delivery_id: string
  started_at: number
  duration_ms: number
  outcome: string
}

const PAGE = 500
/** On a busy machine: a result is stored this long after its answer at the latest. */
const STORING_MS = 2_000
/** What was claimed just before a node was frozen, or PostgreSQL died, is sent this long after at the latest. */
const SENDING_MS = 1_000
/** And clocks are read so late. */
const CLOCK_MS = 100

export async function audit(books: Books): Promise<Audit> {
  const { faults, receivers } = books
  const found: Audit = {
    acknowledged: 0,
    events: 0,
    deliveries: 0,
    delivered: 0,
    missing: 0,
    attempts: {},
    repeated: {},
    mostRepeated: 0,
    unexplained: 0,
    longestOrphanMs: 0,
    longestUndisturbedOrphanMs: 0,
    slowestDeliveryMs: {},
    wrong: [],
  }
  const wrong = (text: string): void => void found.wrong.push(text)
  const missing = (text: string): void => {
    found.missing++
    wrong(text)
  }
  const repeatsOf = new Map<Fault, number>()

  const expected = await checkEvents(books, found, missing)
  for await (const { delivery, attempts } of deliveriesOf(books)) checkDelivery(delivery, attempts)
  for (const [eventId, webhookIds] of expected)
    for (const webhookId of webhookIds)
      missing(`Event ${eventId} has no delivery for webhook ${webhookId}`)
  for (const { name, received } of receivers.values())
    for (const id of received.keys()) wrong(`${name} got ${id}, which is on no record`)
  for (const [fault, repeats] of repeatsOf) {
    found.repeated[fault.kind] = (found.repeated[fault.kind] ?? 0) + repeats
    found.mostRepeated = Math.max(found.mostRepeated, repeats)
    if (repeats > fault.engines * MAX_REPEATS_PER_ENGINE)
      wrong(`${repeats} attempts were repeated after one fault: ${fault.kind}`)
  }
  return found

  function checkDelivery(delivery: DeliveryRow, attempts: AttemptRow[]): void {
    const { id, state } = delivery
    found.deliveries++
    for (const { outcome } of attempts) found.attempts[outcome] = (found.attempts[outcome] ?? 0) + 1
    expected.get(delivery.event_id)?.delete(delivery.webhook_id)
    if (state === 'delivered') found.delivered++
    else
      wrong(
        `Delivery ${id} is ${state} ${delivery.failure_reason ?? ''} after ${attempts.length} attempts`,
      )

    const receiver = receivers.get(delivery.webhook_id)
    const received = receiver?.received.get(id)
    // What is left in the end is on no record.
    receiver?.received.delete(id)
    const confirmed = received?.arrivals.find(({ answered }) => answered)
    if (!receiver || !received || !confirmed) {
      missing(`${delivery.event_type} ${id} never arrived at ${receiver?.name}`)
      return
    }
    if (!received.alwaysTheSame || received.digest !== digestOf(delivery.body))
      wrong(`${id} arrived with another body than is on record`)
    const { name } = receiver
    found.slowestDeliveryMs[name] = Math.max(
      found.slowestDeliveryMs[name] ?? 0,
      confirmed.at - delivery.created_at,
    )
    explain(id, receiver, received.arrivals, unrecorded(received.arrivals, attempts))
  }

  /** Each POST without a result on record must have been in flight, it or its twin, at a fault of its own. */
  function explain(
    id: string,
    receiver: ChaosReceiver,
    arrivals: Arrival[],
    orphans: Arrival[],
  ): void {
    if (orphans.length === 0) return
    const reasons = faults.filter(
      (fault) => fault.engines > 0 && arrivals.some((arrival) => wasInFlight(arrival, fault)),
    )
    for (const fault of reasons.slice(0, orphans.length))
      repeatsOf.set(fault, (repeatsOf.get(fault) ?? 0) + 1)
    const unexplained = orphans.length - reasons.length
    if (unexplained > 0) {
      found.unexplained += unexplained
      const times = arrivals.map(
        ({ at, endedAt, answered }) => `${at}${answered ? '+' : '-'}${endedAt ?? ''}`,
      )
      wrong(
        `${id} was sent ${unexplained} times too often to ${receiver.name}, in no fault: ${times.join(' ')}`,
      )
    }
    for (const orphan of orphans) measureWait(receiver, arrivals, orphan)
  }

  function measureWait(receiver: ChaosReceiver, arrivals: Arrival[], orphan: Arrival): void {
    // The last one at whose very beginning it was in flight: a node that is dead or stands still begins no attempt.
    const fault = faults.findLast(
      (each) => isLossOfNode(each) && orphan.at <= each.from && wasInFlight(orphan, each),
    )
    const next = arrivals.find(({ at }) => at > orphan.at)
    if (!fault || !next) return
    const since = books.cluster.postgres ? fault.from : (fault.readyAt ?? fault.from)
    const waitedMs = next.at - since
    found.longestOrphanMs = Math.max(found.longestOrphanMs, waitedMs)
    const isDisturbed = faults.some(
      (each) =>
        each !== fault &&
        each.from < next.at &&
        each.to > fault.from &&
        (each.engines > 0 || each.target === receiver.name),
    )
    if (!isDisturbed)
      found.longestUndisturbedOrphanMs = Math.max(found.longestUndisturbedOrphanMs, waitedMs)
  }
}

/** Every acknowledged change has its events. Returns, by event, the webhooks that it has to be delivered to. */
async function checkEvents(
  { cluster, load, receivers }: Books,
  found: Audit,
  missing: (text: string) => void,
): Promise<Map<string, Set<string>>> {
  const expected = new Map<string, Set<string>>()
  const counts = new Map<string, number>()
  for await (const event of rowsOf<EventRow>(cluster, 'events', [
    'id',
    'event_type',
    'resource_id',
  ])) {
    found.events++
    const key = keyOf(event.event_type, event.resource_id)
    counts.set(key, (counts.get(key) ?? 0) + 1)
    const webhooks = [...receivers].filter(
      ([, { eventTypes }]) => eventTypes.includes('*') || eventTypes.includes(event.event_type),
    )
    expected.set(event.id, new Set(webhooks.map(([id]) => id)))
  }
  for (const [key, times] of load.acknowledged) {
    found.acknowledged += times
    const lacking = times - (counts.get(key) ?? 0)
    if (lacking > 0) missing(`${key} was acknowledged ${times} times, with ${lacking} events fewer`)
  }
  return expected
}

async function* deliveriesOf({
  cluster,
}: Books): AsyncGenerator<{ delivery: DeliveryRow; attempts: AttemptRow[] }> {
  const columns = [
    'id',
    'event_id',
    'webhook_id',
    'event_type',
    'state',
    'failure_reason',
    'body',
    'created_at',
  ]
  let page: DeliveryRow[] = []
  for await (const row of rowsOf<DeliveryRow>(cluster, 'deliveries', columns)) {
    page.push(row)
    if (page.length === PAGE) {
      yield* withAttempts(cluster, page)
      page = []
    }
  }
  yield* withAttempts(cluster, page)
}

async function* withAttempts(
  cluster: Cluster,
  page: DeliveryRow[],
): AsyncGenerator<{ delivery: DeliveryRow; attempts: AttemptRow[] }> {
  const ids = page.map(({ id }) => id)
  const rows: AttemptRow[] = await cluster.db
    .read('attempts')
    .whereIn('delivery_id', ids)
    .orderBy('number')
    .select('delivery_id', 'started_at', 'duration_ms', 'outcome')
  const attempts = Map.groupBy(rows, (row) => row.delivery_id)
  for (const delivery of page) yield { delivery, attempts: attempts.get(delivery.id) ?? [] }
}

/** In pages, so that an hour's worth fits into memory. */
async function* rowsOf<Row extends { id: string }>(
  { db }: Cluster,
  table: string,
  columns: string[],
): AsyncGenerator<Row> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const rows = (await db
      .read(table)
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE)
      .select(columns)) as Row[]
    yield* rows
    const last = rows.at(-1)
    if (!last) return
    after = last.id
  }
}

/** The POSTs that are the attempt of no row. */
function unrecorded(arrivals: Arrival[], attempts: AttemptRow[]): Arrival[] {
  const left = new Set(arrivals)
  for (const { started_at, duration_ms } of attempts) {
    const within = [...left].filter(
      ({ at }) => at >= started_at - CLOCK_MS && at <= started_at + duration_ms + CLOCK_MS,
    )
    const closest = within.sort(
      (a, b) => Math.abs(a.at - started_at) - Math.abs(b.at - started_at),
    )[0]
    if (closest) left.delete(closest)
  }
  return [...left]
}

function isLossOfNode({ kind }: Fault): boolean {
  return kind === 'worker killed' || kind === 'worker frozen'
}

function wasInFlight({ at, endedAt }: Arrival, { from, to }: Fault): boolean {
  return at <= to + SENDING_MS && (endedAt ?? Number.POSITIVE_INFINITY) >= from - STORING_MS
}
