/** One run: two nodes on a cluster under load, one fault after another, and the audit. */
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startSession } from '../../auth/session.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { findOwner } from '../../records/users.ts'
import { readConfig } from '../../server/config.ts'
import { newAccount, withRecords } from '../bench/set-up.ts'
import { audit } from '../chaos/audit.ts'
import { addWebhook, NODE_SETTINGS, type Node, newNode } from '../chaos/cluster.ts'
import type { Fault } from '../chaos/faults.ts'
import { keyOf, type Load, startLoad } from '../chaos/load.ts'
import { type ChaosReceiver, startChaosReceiver } from '../chaos/receivers.ts'
import { type Alerts, startAlerts } from './alerts.ts'
import { type ConsoleTraffic, startConsole } from './console.ts'
import type { ClusterFault } from './faults.ts'
import type { Programs } from './programs.ts'
import { type Member, type Servers, startServers } from './servers.ts'
import { Successes, startReads } from './traffic.ts'

export interface DrillOptions {
  programs: Programs
  faults: ClusterFault[]
  progress: (text: string) => void
}

/** The figures of one fault. Times of nodes are in the order of `NODES`. */
export interface FaultReport {
  fault: string
  acknowledged: number
  lost: number
  /** The longest time without a successful change. */
  withoutWritesMs: number[]
  withoutReadsMs: number[]
  /** Pages of the console that a standby may serve. */
  withoutConsoleMs: number[]
  consoleLagMs: number
  /** From the promotion of another primary to the next successful change. Empty: no promotion. */
  afterPromotionMs: (number | undefined)[]
  /** Responses to changes by status. */
  responses: Record<string, number>
  /** Deliveries that took more than `LATE_MS` from their event to their arrival, and the longest. */
  lateDeliveries: number
  slowestDeliveryMs: number
  duplicates: number
  logLines: number
  /** The alerts that fired, and after how long. */
  alerts: Record<string, number>
  /** One sentence for each broken promise. */
  broken: string[]
}

export interface DrillReport {
  faults: FaultReport[]
  deliveries: number
  /** One sentence for each broken promise. */
  broken: string[]
  /** The folder of the log files, when a promise was broken. */
  logs?: string
}

export const NODES = ['proxy', 'hosts'] as const
export const LATE_MS = 1_000
const PROMOTED_MS = 1_500
const SETTINGS = { WEBHOOK_RETRY_DELAYS: '1,2,3,4,5,5,5,5,5', ...NODE_SETTINGS }
/** Load before the first fault, and after each one. */
const CALM_MS = 5_000
const WATCH_MS = 100
const SETTLE_WITHIN_MS = 120_000

interface Drill {
  servers: Servers
  db: Db
  nodes: Node[]
  folder: string
  receiver: ChaosReceiver
  load: Load
  writes: Successes
  reads: Successes
  pages: Successes
  console: ConsoleTraffic
  faults: Fault[]
  /** Undefined where Prometheus is not installed. */
  alerts?: Alerts
}

export async function drillCluster({
  programs,
  faults,
  progress,
}: DrillOptions): Promise<DrillReport> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-cluster-'))
  // PostgreSQL runs as another user.
  await chmod(folder, 0o755)
  await using resources = new AsyncDisposableStack()
  let keepsLogs = true
  resources.defer(() => (keepsLogs ? undefined : rm(folder, { recursive: true, force: true })))
  progress('starting etcd, three PostgreSQL under Patroni, and HAProxy')
  const servers = resources.use(await startServers(programs, folder))
  progress('starting two nodes')
  const { drill, stop, webhookId } = await startTraffic(servers, folder, resources)
  const alerts = await startAlerts(drill.nodes, folder, programs)
  if (alerts) drill.alerts = resources.use(alerts)
  else progress('no alert is checked, because the package prometheus is not installed')
  const reports: FaultReport[] = []
  await delay(CALM_MS)
  for (const fault of faults) {
    const report = await causeFault(drill, fault)
    reports.push(report)
    progress(
      `${fault.name}: ${report.lost} lost, ${Math.max(...report.withoutWritesMs)} ms without writes`,
    )
  }
  await stop()
  const broken = [
    ...drill.load.broken,
    ...drill.console.broken,
    ...reports.flatMap((report) => report.broken),
  ]
  for (const node of drill.nodes) {
    if (node.wasUnhealthySince(Date.now() + 1)) broken.push(`${node.name} ended by itself`)
    const status = await node.stop()
    if (status !== 0) broken.push(`${node.name} ended with ${status} on SIGTERM`)
  }
  progress('comparing records and requests')
  const receivers = new Map([[webhookId, drill.receiver]])
  const audited = await audit({
    cluster: { db: drill.db },
    load: drill.load,
    faults: drill.faults,
    receivers,
  })
  broken.push(...audited.broken)
  keepsLogs = broken.length > 0
  return {
    faults: reports,
    deliveries: audited.deliveries,
    broken,
    ...(keepsLogs ? { logs: folder } : {}),
  }
}

interface Traffic {
  drill: Drill
  webhookId: string
  stop(): Promise<void>
}

async function startTraffic(
  servers: Servers,
  folder: string,
  resources: AsyncDisposableStack,
): Promise<Traffic> {
  const { hosts, standbys } = servers.urls
  const environment = { ...SETTINGS, DATABASE_URL: hosts, DATABASE_READ_URL: standbys }
  const { accountId, token, session } = await withRecords(environment, async (trx) => {
    const { scope, token } = await newAccount(trx)
    const device = {
      userId: (await findOwner(scope))?.id ?? '',
      ip: '127.0.0.1',
      userAgent: 'drill',
    }
    const session = await startSession(scope, device, new Date())
    return { accountId: scope.accountId, token, session: session.token }
  })
  const config = readConfig(environment)
  const db = openDatabase(config.database)
  resources.defer(() => db.close())
  const receiver = resources.use(
    await startChaosReceiver({ name: 'receiver', eventTypes: ['*'], afterMs: 0 }),
  )
  const webhookId = await transaction(db, (trx) =>
    addWebhook(writeScope(trx, accountId), receiver.url, ['*'], config),
  )
  const nodes = NODES.map((name) =>
    newNode(name, 'all', {
      environment: { ...environment, DATABASE_URL: servers.urls[name] },
      logFile: join(folder, `node-${name}.log`),
    }),
  )
  resources.defer(async () => void (await Promise.all(nodes.map((node) => node.kill()))))
  await Promise.all(nodes.map((node) => node.start()))
  const [writes, reads, pages] = [new Successes(), new Successes(), new Successes()]
  const load = startLoad({
    cluster: { nodes, token },
    seed: 'cluster',
    databaseEpoch: () => 0,
    onAcknowledged: (node, startedAt) => writes.add(node, startedAt),
  })
  const stopReads = startReads(nodes, token, reads)
  const traffic = { load, writes, reads, pages, console: startConsole(nodes, session, pages) }
  return {
    drill: { servers, db, nodes, folder, receiver, ...traffic, faults: [] },
    webhookId,
    async stop() {
      await Promise.all([load.stop(), stopReads(), traffic.console.stop()])
      await settle(db)
    },
  }
}

async function causeFault(
  drill: Drill,
  { name, lastsMs, alerts: expected = [], begin }: ClusterFault,
): Promise<FaultReport> {
  const { servers, load, nodes, writes, reads, pages } = drill
  await servers.untilHealthy()
  const leader = await servers.findLeader()
  if (!leader) throw new Error('There is no primary')
  const alertWatch = await drill.alerts?.watch()
  const before = { ...counts(drill), responses: new Map(load.responses) }
  const lostBefore = await countLost(drill)
  const from = Date.now()
  // Any attempt in flight during the fault may be repeated.
  const fault: Fault = {
    kind: 'PostgreSQL killed',
    target: name,
    from,
    to: Number.POSITIVE_INFINITY,
    workers: nodes.length,
  }
  drill.faults.push(fault)
  const watch = watchLeader(servers, leader)
  const end = await begin(servers, leader, nodes)
  await delay(lastsMs)
  end()
  await servers.untilHealthy()
  await delay(CALM_MS)
  const to = Date.now()
  const brokenAlerts = (await alertWatch?.end(expected)) ?? []
  fault.to = Date.now()
  const promotedAt = await watch.stop()
  await settle(drill.db)
  const after = counts(drill)
  const lost = (await countLost(drill)) - lostBefore
  const afterPromotionMs =
    promotedAt === undefined ? [] : nodes.map((node) => writes.firstAfterMs(node, promotedAt))
  const broken = [...brokenAlerts]
  if (lost > 0) broken.push(`${lost} acknowledged changes were lost`)
  if (afterPromotionMs.some((ms = Number.POSITIVE_INFINITY) => ms > PROMOTED_MS))
    broken.push(`no change succeeded within ${PROMOTED_MS} ms after the promotion`)
  return {
    fault: name,
    acknowledged: after.acknowledged - before.acknowledged,
    lost,
    withoutWritesMs: nodes.map((node) => writes.longestGapMs(node, from, to)),
    withoutReadsMs: nodes.map((node) => reads.longestGapMs(node, from, to)),
    withoutConsoleMs: nodes.map((node) => pages.longestGapMs(node, from, to)),
    consoleLagMs: drill.console.longestLagMs(from, to),
    afterPromotionMs,
    responses: difference(load.responses, before.responses),
    ...(await findLateDeliveries(drill, from)),
    duplicates: after.duplicates - before.duplicates,
    logLines: after.logLines - before.logLines,
    alerts: Object.fromEntries(alertWatch?.fired ?? []),
    broken: broken.map((sentence) => `${name}: ${sentence}`),
  }
}

/** Looks for a new leader until `stop`, which returns when it was promoted. */
function watchLeader(servers: Servers, former: Member): { stop(): Promise<number | undefined> } {
  let promotedAt: number | undefined
  let isOver = false
  const watching = (async () => {
    while (!isOver && promotedAt === undefined) {
      for (const member of servers.members)
        if (member !== former && (await servers.isPrimary(member))) promotedAt ??= Date.now()
      await delay(WATCH_MS)
    }
  })()
  return {
    async stop() {
      isOver = true
      await watching
      return promotedAt
    },
  }
}

function counts({ load, receiver, nodes, folder }: Drill): {
  acknowledged: number
  duplicates: number
  logLines: number
} {
  const sum = (numbers: Iterable<number>): number =>
    Iterator.from(numbers).reduce((total, number) => total + number, 0)
  return {
    acknowledged: sum(load.acknowledged.values()),
    duplicates: sum(receiver.received.values().map(({ arrivals }) => arrivals.length - 1)),
    logLines: sum(
      nodes.map(({ name }) => {
        const text = readFileSync(join(folder, `node-${name}.log`), 'utf8')
        return text.split('\n').length - 1
      }),
    ),
  }
}

function difference(
  after: Map<string, number>,
  before: Map<string, number>,
): Record<string, number> {
  const changed = [...after].map(([key, count]): [string, number] => [
    key,
    count - (before.get(key) ?? 0),
  ])
  return Object.fromEntries(changed.filter(([, count]) => count > 0))
}

/** Acknowledged changes without an event in the database. */
async function countLost({ db, load }: Drill): Promise<number> {
  const acknowledged = new Map(load.acknowledged)
  const rows: { event_type: string; resource_id: string; count: number }[] = await db
    .read('events')
    .groupBy('event_type', 'resource_id')
    .select('event_type', 'resource_id')
    .count({ count: '*' })
  const stored = new Map(
    rows.map((row) => [keyOf(row.event_type, row.resource_id), Number(row.count)]),
  )
  return acknowledged
    .entries()
    .reduce((lost, [key, times]) => lost + Math.max(0, times - (stored.get(key) ?? 0)), 0)
}

async function findLateDeliveries(
  { db, receiver }: Drill,
  since: number,
): Promise<{ lateDeliveries: number; slowestDeliveryMs: number }> {
  let [lateDeliveries, slowestDeliveryMs] = [0, 0]
  const rows: { id: string; created_at: number }[] = await db
    .read('deliveries')
    .where('created_at', '>=', since)
    .select('id', 'created_at')
  for (const { id, created_at } of rows) {
    const [first] = receiver.received.get(id)?.arrivals ?? []
    const tookMs = first ? first.at - created_at : 0
    if (tookMs > LATE_MS) lateDeliveries++
    slowestDeliveryMs = Math.max(slowestDeliveryMs, tookMs)
  }
  return { lateDeliveries, slowestDeliveryMs }
}

/** Waits until the deliveries that exist now have ended. */
async function settle(db: Db): Promise<void> {
  const until = Date.now()
  while (Date.now() < until + SETTLE_WITHIN_MS) {
    const unfinished = await db
      .read('deliveries')
      .whereIn('state', ['pending', 'retrying'])
      .where('created_at', '<=', until)
      .first('id')
    if (!unfinished) return
    await delay(WATCH_MS)
  }
}
