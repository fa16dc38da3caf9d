/** Compares acknowledged changes with the stored events and deliveries, and the deliveries with the
 *  requests that arrived. */
import type { Cluster } from './cluster.ts'
import { clockOffsets, type Fault, type FaultKind } from './faults.ts'
import { keyOf, type Load } from './load.ts'
import { type Arrival, type ChaosReceiver, digestOf } from './receivers.ts'

/** The most attempts that one process has in flight. */
export const MAX_REPEATS_PER_WORKER = 640

export interface Audit {
  acknowledged: number
  events: number
  deliveries: number
  delivered: number
  /** Deliveries without a confirmed arrival, and acknowledged changes without an event. */
  missing: number
  /** By outcome. */
  attempts: Record<string, number>
  /** POSTs whose result was not stored, by the fault during which they were in flight. */
  repeated: Partial<Record<FaultKind, number>>
  /** The most POSTs whose result was not stored because of one fault. */
  mostRepeated: number
  /** POSTs whose result was not stored, and that no fault explains. */
  unexplained: number
  /** The longest time in milliseconds from a fault until an orphan, an attempt whose result was not
   *  stored, was repeated. In embedded mode the time starts when the node is ready again. */
  longestOrphanMs: number
  /** The same, without another fault during that time. */
  longestUndisturbedOrphanMs: number
  /** The longest time from the commit of an event until its 2xx response, by receiver. */
  slowestDeliveryMs: Record<string, number>
  /** One sentence for each broken promise. */
  broken: string[]
}

export interface AuditInput {
  cluster: Pick<Cluster, 'db' | 'postgres'>
  load: Pick<Load, 'acknowledged' | 'notCreated'>
  faults: Fault[]
  /** By webhook ID. */
  receivers: Map<string, ChaosReceiver>
}

interface EventRow {
  id: string
  event_type: string
  resource_id: string
}

interface TaskRow {
  id: string
  title: string
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

const PAGE_ROWS = 500
/** On a busy machine a result is stored at most this long after its response. */
const STORING_MS = 2_000
/** On a busy machine, attempts leased just before a node froze or PostgreSQL died are sent within
 *  this time. */
const SENDING_MS = 2_000
/** The clock readings of two processes differ by at most this. */
const CLOCK_MS = 100
const DAY_MS = 86_400_000

export async function audit(input: AuditInput): Promise<Audit> {
  const auditor = new Auditor(input)
  await auditor.checkAll()
  return auditor.found
}

class Auditor {
  readonly found: Audit = {
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
    broken: [],
  }
  private readonly input: AuditInput
  private readonly repeatsOf = new Map<Fault, number>()
  /** By event ID: the webhook IDs that still need a delivery. */
  private expected = new Map<string, Set<string>>()

  constructor(input: AuditInput) {
    this.input = input
  }

  async checkAll(): Promise<void> {
    this.expected = await checkEvents(this.input, this.found, (text) => this.reportMissing(text))
    for await (const { delivery, attempts } of deliveriesOf(this.input))
      this.checkDelivery(delivery, attempts)
    for (const [eventId, webhookIds] of this.expected)
      for (const webhookId of webhookIds)
        this.reportMissing(`Event ${eventId} has no delivery for webhook ${webhookId}`)
    for (const { name, received } of this.input.receivers.values())
      for (const id of received.keys()) this.report(`${name} got ${id}, which is not stored`)
    this.checkRepeats()
    const { cluster, load } = this.input
    for await (const { title } of rowsOf<TaskRow>(cluster, 'tasks', ['id', 'title']))
      if (load.notCreated.has(title)) this.report(`${title} exists, but its 503 said none`)
  }

  private checkRepeats(): void {
    const { found } = this
    for (const [fault, repeats] of this.repeatsOf) {
      found.repeated[fault.kind] = (found.repeated[fault.kind] ?? 0) + repeats
      found.mostRepeated = Math.max(found.mostRepeated, repeats)
      if (repeats > fault.workers * MAX_REPEATS_PER_WORKER)
        this.report(`${repeats} attempts were repeated after one fault: ${fault.kind}`)
    }
  }

  private report(text: string): void {
    this.found.broken.push(text)
  }

  private reportMissing(text: string): void {
    this.found.missing++
    this.report(text)
  }

  private checkDelivery(delivery: DeliveryRow, attempts: AttemptRow[]): void {
    const { id, state } = delivery
    this.found.deliveries++
    for (const { outcome } of attempts)
      this.found.attempts[outcome] = (this.found.attempts[outcome] ?? 0) + 1
    this.expected.get(delivery.event_id)?.delete(delivery.webhook_id)
    if (state === 'delivered') this.found.delivered++
    else
      this.report(
        `Delivery ${id} is ${state} ${delivery.failure_reason ?? ''} after ${attempts.length} attempts`,
      )

    const receiver = this.input.receivers.get(delivery.webhook_id)
    const received = receiver?.received.get(id)
    // Deliveries that are left in the map at the end are not in the database.
    receiver?.received.delete(id)
    const confirmed = received?.arrivals.find(({ hasResponse }) => hasResponse)
    if (!receiver || !received || !confirmed) {
      this.reportMissing(`${delivery.event_type} ${id} never arrived at ${receiver?.name}`)
      return
    }
    if (!received.hasEqualBodies || received.digest !== digestOf(delivery.body))
      this.report(`${id} arrived with another body than the stored one`)
    const { name } = receiver
    this.found.slowestDeliveryMs[name] = Math.max(
      this.found.slowestDeliveryMs[name] ?? 0,
      confirmed.at - rightTime(delivery.created_at),
    )
    this.explain(id, receiver, received.arrivals, attempts)
  }

  /** Each POST without a stored result must have been in flight during a fault of its own. */
  private explain(
    id: string,
    receiver: ChaosReceiver,
    arrivals: Arrival[],
    attempts: AttemptRow[],
  ): void {
    const orphans = unrecorded(arrivals, attempts)
    if (orphans.length === 0) return
    const reasons = this.input.faults.filter(
      (fault) => fault.workers > 0 && arrivals.some((arrival) => wasInFlight(arrival, fault)),
    )
    for (const fault of reasons.slice(0, orphans.length))
      this.repeatsOf.set(fault, (this.repeatsOf.get(fault) ?? 0) + 1)
    const unexplained = orphans.length - reasons.length
    if (unexplained > 0) {
      this.found.unexplained += unexplained
      const sent = arrivals.map(
        ({ at, endedAt, hasResponse }) => `${at}${hasResponse ? '+' : '-'}${endedAt ?? ''}`,
      )
      const stored = attempts.map(
        ({ started_at, duration_ms, outcome }) => `${started_at} for ${duration_ms} ms: ${outcome}`,
      )
      this.report(
        `${id} was sent ${unexplained} times too often to ${receiver.name} without a fault. ` +
          `Arrived: ${sent.join(', ')}. Stored: ${stored.join(', ')}`,
      )
    }
    for (const orphan of orphans) this.measureWait(receiver, arrivals, orphan)
  }

  private measureWait(receiver: ChaosReceiver, arrivals: Arrival[], orphan: Arrival): void {
    // The last fault during which this attempt was in flight: a dead or frozen node starts no
    // attempt.
    const fault = this.input.faults.findLast(
      (each) => isLossOfNode(each) && orphan.at <= each.from && wasInFlight(orphan, each),
    )
    const next = arrivals.find(({ at }) => at > orphan.at)
    if (!fault || !next) return
    const since = this.input.cluster.postgres ? fault.from : (fault.readyAt ?? fault.from)
    const waitedMs = next.at - since
    this.found.longestOrphanMs = Math.max(this.found.longestOrphanMs, waitedMs)
    const isDisturbed = this.input.faults.some(
      (each) =>
        each !== fault &&
        each.from < next.at &&
        each.to > fault.from &&
        (each.workers > 0 || each.kind === 'clock jumped' || each.target === receiver.name),
    )
    if (!isDisturbed)
      this.found.longestUndisturbedOrphanMs = Math.max(
        this.found.longestUndisturbedOrphanMs,
        waitedMs,
      )
  }
}

/** Checks that every acknowledged change has its events. Returns the IDs of the webhooks that need
 *  a delivery, by event ID. */
async function checkEvents(
  { cluster, load, receivers }: AuditInput,
  found: Audit,
  reportMissing: (text: string) => void,
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
    if (lacking > 0)
      reportMissing(`${key} was acknowledged ${times} times, with ${lacking} events fewer`)
  }
  return expected
}

async function* deliveriesOf({
  cluster,
}: AuditInput): AsyncGenerator<{ delivery: DeliveryRow; attempts: AttemptRow[] }> {
  const columns = [
    ...['id', 'event_id', 'webhook_id', 'event_type'],
    ...['state', 'failure_reason', 'body', 'created_at'],
  ]
  let page: DeliveryRow[] = []
  for await (const row of rowsOf<DeliveryRow>(cluster, 'deliveries', columns)) {
    page.push(row)
    if (page.length === PAGE_ROWS) {
      yield* withAttempts(cluster, page)
      page = []
    }
  }
  yield* withAttempts(cluster, page)
}

async function* withAttempts(
  cluster: AuditInput['cluster'],
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

/** Reads pages, so that the rows of an hour fit into memory. */
async function* rowsOf<Row extends { id: string }>(
  { db }: AuditInput['cluster'],
  table: string,
  columns: string[],
): AsyncGenerator<Row> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const rows = (await db
      .read(table)
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE_ROWS)
      .select(columns)) as Row[]
    yield* rows
    const last = rows.at(-1)
    if (!last) return
    after = last.id
  }
}

/** POSTs that belong to no stored attempt. */
function unrecorded(arrivals: Arrival[], attempts: AttemptRow[]): Arrival[] {
  const unmatched = new Set(arrivals)
  for (const { started_at, duration_ms } of attempts) {
    const startedAt = rightTime(started_at)
    const within = [...unmatched].filter(
      ({ at }) => at >= startedAt - CLOCK_MS && at <= startedAt + duration_ms + CLOCK_MS,
    )
    const distance = ({ at }: Arrival): number => Math.abs(at - startedAt)
    const [closest] = within.sort((a, b) => distance(a) - distance(b))
    if (closest) unmatched.delete(closest)
  }
  return [...unmatched]
}

/** The right time of a row. In embedded mode rows have the time of the node, whose clock may have
 *  been wrong. Every offset is longer than a run, so the right time is the one closest to now. */
function rightTime(stored: number): number {
  const distance = (time: number): number => Math.abs(Date.now() - time)
  let closest = stored
  for (const offset of clockOffsets) {
    const time = stored - Number.parseInt(offset, 10) * DAY_MS
    if (distance(time) < distance(closest)) closest = time
  }
  return closest
}

function isLossOfNode({ kind }: Fault): boolean {
  return kind === 'worker killed' || kind === 'worker frozen'
}

function wasInFlight({ at, endedAt }: Arrival, { from, to }: Fault): boolean {
  return at <= to + SENDING_MS && (endedAt ?? Number.POSITIVE_INFINITY) >= from - STORING_MS
}
