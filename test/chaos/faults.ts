/** The faults, their timing, and the attempts that they may repeat. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { ClockOffset, FakeClock } from '../faketime.ts'
import type { TestPostgres } from '../postgres.ts'
import type { Cluster, Node } from './cluster.ts'
import type { Disk } from './disk.ts'
import type { Random } from './random.ts'
import { type ChaosReceiver, type ReceiverFailure, receiverFailures } from './receivers.ts'

export const faultKinds = [
  'API node killed',
  'worker killed',
  'worker frozen',
  'PostgreSQL killed',
  'PostgreSQL restarted during a start',
  'connections cut',
  'wrong SECRET_KEY',
  'clock jumped',
  'disk full',
  ...receiverFailures.map((failure) => `receiver ${failure}` as const),
] as const
export type FaultKind = (typeof faultKinds)[number]

/** A fault that happened. */
export interface Fault {
  kind: FaultKind
  target: string
  /** Attempts in flight between these times may be repeated. Epoch milliseconds; Infinity while
   *  the fault lasts. */
  from: number
  to: number
  /** Only of a killed node: when its next process was spawned and ready. */
  respawnedAt?: number
  readyAt?: number
  /** The number of affected workers. A fault of 0 workers explains no repeated attempt. */
  workers: number
}

export interface FaultContext {
  cluster: Cluster
  receivers: ChaosReceiver[]
  random: Random
  /** Increases when PostgreSQL goes down and when it returns: odd while it is down. */
  database: { epoch: number }
  /** All faults so far. Filled as they happen. */
  faults: Fault[]
  /** One sentence for each promise that a node breaks during a fault. Filled as it happens. */
  broken: string[]
  progress: (text: string) => void
}

export interface FaultOptions {
  /** No fault starts after this time, once each kind has occurred. Epoch milliseconds. */
  until: number
  /** Minimum and maximum rest between the starts of two faults. */
  restMs: [number, number]
  /** Rest after each round of all kinds. It exceeds the lease, so that repeated attempts are
   *  observed. */
  calmMs: number
  without?: FaultKind[]
}

/** A lease expires 10 s after its last renewal, and other workers check every 5 s. */
const LEASE_MS = 15_000
const FROZEN_MS: [number, number] = [LEASE_MS + 2_000, LEASE_MS + 6_000]
const DEAD_MS: [number, number] = [0, 2_000]
const DATABASE_AWAY_MS: [number, number] = [500, 5_000]
/** From the start of a node until PostgreSQL is killed: before, during and after the first queries
 *  of the node. */
const INTO_START_MS: [number, number] = [0, 1_000]
/** The audit must tell these offsets apart, so they differ by more than a run lasts. */
export const clockOffsets: ClockOffset[] = ['+100d', '-100d', '+1d', '-1d']
const WRONG_CLOCK_MS: [number, number] = [3_000, 10_000]
/** A process reads its offset once a second, and a worker realigns every 5 s. */
const CLOCK_SET_MS = 6_000
const DISK_FULL_MS: [number, number] = [1_000, 6_000]
const RECOVERY_POLL_MS = 100
const RECEIVER_FAILURE_MS: [number, number] = [2_000, 6_000]
const CUT_SHARE = 0.5

interface Target {
  /** No other fault may affect these parts of the installation meanwhile. */
  parts: string[]
  /** Causes the fault. Resolves when the part has recovered. */
  cause(): Promise<void>
}

/** One kind of fault and its possible targets. */
interface Candidate {
  kind: FaultKind
  targets: Target[]
}

/** Causes faults of every kind at random times, also several at once. Resolves when every part has
 *  recovered. */
export async function causeFaults(
  context: FaultContext,
  { until, restMs, calmMs, without = [] }: FaultOptions,
): Promise<void> {
  const candidates = candidatesOf(context).filter(
    ({ kind, targets }) => targets.length > 0 && !without.includes(kind),
  )
  const { random } = context
  const busyParts = new Set<string>()
  const isFree = ({ parts }: Target): boolean => !parts.some((part) => busyParts.has(part))
  const running: Promise<void>[] = []
  let round = random.shuffled(candidates)
  let isFirstRound = true
  while (Date.now() < until || isFirstRound) {
    await delay(random.between(...restMs))
    const [candidate, ...laterCandidates] = round
    const target = random.pick((candidate?.targets ?? []).filter(isFree))
    if (!candidate || target === undefined) continue
    const { parts } = target
    context.progress(`${candidate.kind}: ${parts.join(', ')}`)
    for (const part of parts) busyParts.add(part)
    const fault = target.cause().finally(() => {
      for (const part of parts) busyParts.delete(part)
    })
    // Rethrown below, after all other faults have ended.
    fault.catch(() => undefined)
    running.push(fault)
    round = laterCandidates
    if (laterCandidates.length > 0) continue
    isFirstRound = false
    round = random.shuffled(candidates)
    await delay(Math.max(0, Math.min(calmMs, until - Date.now())))
  }
  await Promise.all(running)
}

function candidatesOf(context: FaultContext): Candidate[] {
  const { cluster, receivers } = context
  const { nodes, postgres, disk } = cluster
  const onNodes = (roles: string[], cause: (node: Node) => Promise<void>): Target[] =>
    nodes
      .filter(({ role }) => roles.includes(role))
      .map((node) => ({ parts: [node.name], cause: () => cause(node) }))
  const onPostgres = (cause: (postgres: TestPostgres) => Promise<void>): Target[] =>
    postgres ? [{ parts: ['PostgreSQL'], cause: () => cause(postgres) }] : []
  return [
    {
      kind: 'API node killed',
      targets: onNodes(['api'], (node) => killNode(context, 'API node killed', node)),
    },
    {
      kind: 'worker killed',
      targets: onNodes(['worker', 'all'], (node) => killNode(context, 'worker killed', node)),
    },
    {
      kind: 'worker frozen',
      // In embedded mode there is one node.
      targets: onNodes([postgres ? 'worker' : 'all'], (node) => freezeNode(context, node)),
    },
    { kind: 'PostgreSQL killed', targets: onPostgres((server) => killPostgres(context, server)) },
    {
      kind: 'PostgreSQL restarted during a start',
      targets: nodes.flatMap((node) =>
        onPostgres((server) => restartDuringStart(context, server, node)).map(
          ({ parts, cause }) => ({ parts: [node.name, ...parts], cause }),
        ),
      ),
    },
    { kind: 'connections cut', targets: onPostgres(() => cutConnections(context)) },
    {
      kind: 'wrong SECRET_KEY',
      targets: onNodes(['api', 'worker', 'all'], (node) => startWithWrongKey(context, node)),
    },
    {
      kind: 'clock jumped',
      targets: nodes.flatMap(({ name, clock }) =>
        clock ? [{ parts: [`clock of ${name}`], cause: () => setClock(context, name, clock) }] : [],
      ),
    },
    {
      kind: 'disk full',
      targets: disk
        ? [{ parts: [postgres ? 'PostgreSQL' : 'disk'], cause: () => fillDisk(context, disk) }]
        : [],
    },
    ...receiverFailures.map(
      (failure): Candidate => ({
        kind: `receiver ${failure}`,
        targets: receivers.map((receiver) => ({
          parts: [receiver.name],
          cause: () => breakReceiver(context, receiver, failure),
        })),
      }),
    ),
  ]
}

function countWorkers({ nodes }: Cluster): number {
  return nodes.filter(({ role }) => role !== 'api').length
}

function begin(context: FaultContext, fault: Omit<Fault, 'from' | 'to'>): Fault {
  const begun = { ...fault, from: Date.now(), to: Number.POSITIVE_INFINITY }
  context.faults.push(begun)
  return begun
}

async function killNode(
  context: FaultContext,
  kind: 'API node killed' | 'worker killed',
  node: Node,
): Promise<void> {
  const fault = begin(context, { kind, target: node.name, workers: node.role === 'api' ? 0 : 1 })
  await node.kill()
  fault.to = Date.now()
  await delay(context.random.between(...DEAD_MS))
  await node.start()
  fault.respawnedAt = node.spawnedAt
  fault.readyAt = node.readyAt
}

/** Freezes a worker for longer than its lease: other workers take over its attempts, then the
 *  frozen worker resumes. */
async function freezeNode(context: FaultContext, node: Node): Promise<void> {
  const fault = begin(context, { kind: 'worker frozen', target: node.name, workers: 1 })
  node.freeze()
  await delay(context.random.between(...FROZEN_MS))
  node.thaw()
  fault.to = Date.now()
}

async function killPostgres(context: FaultContext, postgres: TestPostgres): Promise<void> {
  const workers = countWorkers(context.cluster)
  const fault = begin(context, { kind: 'PostgreSQL killed', target: 'PostgreSQL', workers })
  await restartPostgres(context, postgres)
  fault.to = Date.now()
}

async function restartDuringStart(
  context: FaultContext,
  postgres: TestPostgres,
  node: Node,
): Promise<void> {
  const kind = 'PostgreSQL restarted during a start'
  const fault = begin(context, { kind, target: node.name, workers: countWorkers(context.cluster) })
  await node.kill()
  const started = node.start()
  // Thrown below.
  started.catch(() => undefined)
  await delay(context.random.between(...INTO_START_MS))
  await restartPostgres(context, postgres)
  fault.to = Date.now()
  await started
}

async function restartPostgres(
  { database, random }: FaultContext,
  postgres: TestPostgres,
): Promise<void> {
  await postgres.kill()
  database.epoch++
  await delay(random.between(...DATABASE_AWAY_MS))
  database.epoch++
  await postgres.restart()
}

async function startWithWrongKey(context: FaultContext, node: Node): Promise<void> {
  const workers = node.role === 'api' ? 0 : 1
  const fault = begin(context, { kind: 'wrong SECRET_KEY', target: node.name, workers })
  const status = await node.stop()
  fault.to = Date.now()
  if (status !== 0) context.broken.push(`${node.name} ended with ${status} on SIGTERM`)
  if (!(await node.tryWrongKey()))
    context.broken.push(`${node.name} did not refuse a wrong SECRET_KEY`)
  await node.kill()
  await node.start()
}

async function setClock(context: FaultContext, target: string, clock: FakeClock): Promise<void> {
  const fault = begin(context, { kind: 'clock jumped', target, workers: 0 })
  clock.set(context.random.pick(clockOffsets) ?? '+0')
  await delay(context.random.between(...WRONG_CLOCK_MS))
  clock.set('+0')
  await delay(CLOCK_SET_MS)
  fault.to = Date.now()
}

async function fillDisk(context: FaultContext, disk: Disk): Promise<void> {
  const { cluster, random } = context
  const workers = countWorkers(cluster)
  const fault = begin(context, { kind: 'disk full', target: 'disk', workers })
  await disk.fill()
  await delay(random.between(...DISK_FULL_MS))
  disk.free()
  // PostgreSQL ends when it cannot write its log, and when it cannot recover from that.
  if (cluster.postgres) await recover(cluster.postgres)
  fault.to = Date.now()
}

async function recover(postgres: TestPostgres): Promise<void> {
  while (!(await responds(postgres.url('postgres')))) {
    if (postgres.hasEnded()) return postgres.restart()
    await delay(RECOVERY_POLL_MS)
  }
}

async function responds(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    await client.end()
  }
}

/** Cuts random connections to the database of the nodes. */
async function cutConnections(context: FaultContext): Promise<void> {
  const { cluster } = context
  const fault = begin(context, {
    kind: 'connections cut',
    target: 'PostgreSQL',
    workers: countWorkers(cluster),
  })
  const client = new pg.Client({
    connectionString: cluster.db.read.client.config.connection.connectionString,
  })
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and random() < ${CUT_SHARE}`,
    )
  } finally {
    await client.end()
  }
  fault.to = Date.now()
}

async function breakReceiver(
  context: FaultContext,
  receiver: ChaosReceiver,
  failure: ReceiverFailure,
): Promise<void> {
  const fault = begin(context, { kind: `receiver ${failure}`, target: receiver.name, workers: 0 })
  receiver.failure = failure
  await delay(context.random.between(...RECEIVER_FAILURE_MS))
  receiver.failure = undefined
  fault.to = Date.now()
}
