/** The faults, their timing, and the attempts that they may repeat. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { ClockOffset, FakeClock } from '../faketime.ts'
import type { TestPostgres } from '../postgres.ts'
import type { Cluster, Node } from './cluster.ts'
import type { Disk } from './disk.ts'
import type { Random } from './random.ts'
import { type ChaosReceiver, illnesses } from './receivers.ts'

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
  ...illnesses.map((illness) => `receiver ${illness}` as const),
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
  /** Number of affected processes with attempts. 0 means that the fault explains no repeated
   *  attempt. */
  engines: number
}

export interface Storm {
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

export interface StormOptions {
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
/** From the start of a node until PostgreSQL is killed: before, during and after its first
 *  queries. */
const INTO_START_MS: [number, number] = [0, 1_000]
/** The ledger must tell them apart, so they differ by more than a run lasts. */
export const clockOffsets: ClockOffset[] = ['+100d', '-100d', '+1d', '-1d']
const WRONG_CLOCK_MS: [number, number] = [3_000, 10_000]
/** A process reads its offset once a second, and a worker realigns every 5 s. */
const CLOCK_SET_MS = 6_000
const DISK_FULL_MS: [number, number] = [1_000, 6_000]
const RECOVERY_POLL_MS = 100
const ILL_MS: [number, number] = [2_000, 6_000]
const CUT_SHARE = 0.5

interface Target {
  /** What no other fault may affect meanwhile. */
  parts: string[]
  strike(): Promise<void>
}

/** One kind of fault and its possible targets. */
interface Blow {
  kind: FaultKind
  targets: Target[]
}

/** Causes faults of every kind at random times, also several at once. Resolves when all has
 *  recovered. */
export async function rage(
  storm: Storm,
  { until, restMs, calmMs, without = [] }: StormOptions,
): Promise<void> {
  const blows = blowsOf(storm).filter(
    ({ kind, targets }) => targets.length > 0 && !without.includes(kind),
  )
  const { random } = storm
  const struck = new Set<string>()
  const strikes: Promise<void>[] = []
  let turn = random.shuffled(blows)
  let isFirstTurn = true
  while (Date.now() < until || isFirstTurn) {
    await delay(random.between(...restMs))
    const [blow, ...rest] = turn
    const target = random.pick(
      (blow?.targets ?? []).filter(({ parts }) => !parts.some((part) => struck.has(part))),
    )
    if (!blow || target === undefined) continue
    isFirstTurn &&= rest.length > 0
    turn = rest.length > 0 ? rest : random.shuffled(blows)
    const { parts } = target
    storm.progress(`${blow.kind}: ${parts.join(', ')}`)
    for (const part of parts) struck.add(part)
    const strike = target.strike().finally(() => {
      for (const part of parts) struck.delete(part)
    })
    // Rethrown below, after all other faults have ended.
    strike.catch(() => undefined)
    strikes.push(strike)
    if (rest.length === 0) await delay(Math.max(0, Math.min(calmMs, until - Date.now())))
  }
  await Promise.all(strikes)
}

function blowsOf(storm: Storm): Blow[] {
  const { cluster, receivers } = storm
  const { nodes, postgres, disk } = cluster
  const onNodes = (roles: string[], strike: (node: Node) => Promise<void>): Target[] =>
    nodes
      .filter(({ role }) => roles.includes(role))
      .map((node) => ({ parts: [node.name], strike: () => strike(node) }))
  const onPostgres = (strike: (postgres: TestPostgres) => Promise<void>): Target[] =>
    postgres ? [{ parts: ['PostgreSQL'], strike: () => strike(postgres) }] : []
  return [
    {
      kind: 'API node killed',
      targets: onNodes(['api'], (node) => killNode(storm, 'API node killed', node)),
    },
    {
      kind: 'worker killed',
      targets: onNodes(['worker', 'all'], (node) => killNode(storm, 'worker killed', node)),
    },
    {
      kind: 'worker frozen',
      // In embedded mode there is one node.
      targets: onNodes([postgres ? 'worker' : 'all'], (node) => freezeNode(storm, node)),
    },
    { kind: 'PostgreSQL killed', targets: onPostgres((it) => killPostgres(storm, it)) },
    {
      kind: 'PostgreSQL restarted during a start',
      targets: nodes.flatMap((node) =>
        onPostgres((it) => restartDuringStart(storm, it, node)).map(({ parts, strike }) => ({
          parts: [node.name, ...parts],
          strike,
        })),
      ),
    },
    { kind: 'connections cut', targets: onPostgres(() => cutConnections(storm)) },
    {
      kind: 'wrong SECRET_KEY',
      targets: onNodes(['api', 'worker', 'all'], (node) => startWithWrongKey(storm, node)),
    },
    {
      kind: 'clock jumped',
      targets: nodes.flatMap(({ name, clock }) =>
        clock ? [{ parts: [`clock of ${name}`], strike: () => setClock(storm, name, clock) }] : [],
      ),
    },
    {
      kind: 'disk full',
      targets: disk
        ? [{ parts: [postgres ? 'PostgreSQL' : 'disk'], strike: () => fillDisk(storm, disk) }]
        : [],
    },
    ...illnesses.map(
      (illness): Blow => ({
        kind: `receiver ${illness}`,
        targets: receivers.map((receiver) => ({
          parts: [receiver.name],
          strike: () => fallIll(storm, receiver, illness),
        })),
      }),
    ),
  ]
}

function enginesOf({ nodes }: Cluster): number {
  return nodes.filter(({ role }) => role !== 'api').length
}

function begin(storm: Storm, fault: Omit<Fault, 'from' | 'to'>): Fault {
  const begun = { ...fault, from: Date.now(), to: Number.POSITIVE_INFINITY }
  storm.faults.push(begun)
  return begun
}

async function killNode(
  storm: Storm,
  kind: 'API node killed' | 'worker killed',
  node: Node,
): Promise<void> {
  const fault = begin(storm, { kind, target: node.name, engines: node.role === 'api' ? 0 : 1 })
  await node.kill()
  fault.to = Date.now()
  await delay(storm.random.between(...DEAD_MS))
  await node.start()
  fault.respawnedAt = node.spawnedAt
  fault.readyAt = node.readyAt
}

/** Freezes a worker for longer than its lease: others take over its attempts, then it resumes. */
async function freezeNode(storm: Storm, node: Node): Promise<void> {
  const fault = begin(storm, { kind: 'worker frozen', target: node.name, engines: 1 })
  node.freeze()
  await delay(storm.random.between(...FROZEN_MS))
  node.thaw()
  fault.to = Date.now()
}

async function killPostgres(storm: Storm, postgres: TestPostgres): Promise<void> {
  const engines = enginesOf(storm.cluster)
  const fault = begin(storm, { kind: 'PostgreSQL killed', target: 'PostgreSQL', engines })
  await bounce(storm, postgres)
  fault.to = Date.now()
}

async function restartDuringStart(storm: Storm, postgres: TestPostgres, node: Node): Promise<void> {
  const kind = 'PostgreSQL restarted during a start'
  const fault = begin(storm, { kind, target: node.name, engines: enginesOf(storm.cluster) })
  await node.kill()
  const started = node.start()
  // Thrown below.
  started.catch(() => undefined)
  await delay(storm.random.between(...INTO_START_MS))
  await bounce(storm, postgres)
  fault.to = Date.now()
  await started
}

async function bounce({ database, random }: Storm, postgres: TestPostgres): Promise<void> {
  await postgres.kill()
  database.epoch++
  await delay(random.between(...DATABASE_AWAY_MS))
  database.epoch++
  await postgres.restart()
}

async function startWithWrongKey(storm: Storm, node: Node): Promise<void> {
  const engines = node.role === 'api' ? 0 : 1
  const fault = begin(storm, { kind: 'wrong SECRET_KEY', target: node.name, engines })
  const status = await node.stop()
  fault.to = Date.now()
  if (status !== 0) storm.broken.push(`${node.name} ended with ${status} on SIGTERM`)
  if (!(await node.refusesWrongKey()))
    storm.broken.push(`${node.name} did not refuse a wrong SECRET_KEY`)
  await node.kill()
  await node.start()
}

async function setClock(storm: Storm, target: string, clock: FakeClock): Promise<void> {
  const fault = begin(storm, { kind: 'clock jumped', target, engines: 0 })
  clock.set(storm.random.pick(clockOffsets) ?? '+0')
  await delay(storm.random.between(...WRONG_CLOCK_MS))
  clock.set('+0')
  await delay(CLOCK_SET_MS)
  fault.to = Date.now()
}

async function fillDisk(storm: Storm, disk: Disk): Promise<void> {
  const { cluster, random } = storm
  const engines = enginesOf(cluster)
  const fault = begin(storm, { kind: 'disk full', target: 'disk', engines })
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

/** Cuts random connections of requests, engine and queue. */
async function cutConnections(storm: Storm): Promise<void> {
  const { cluster } = storm
  const fault = begin(storm, {
    kind: 'connections cut',
    target: 'PostgreSQL',
    engines: enginesOf(cluster),
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

async function fallIll(
  storm: Storm,
  receiver: ChaosReceiver,
  illness: (typeof illnesses)[number],
): Promise<void> {
  const fault = begin(storm, { kind: `receiver ${illness}`, target: receiver.name, engines: 0 })
  receiver.health = illness
  await delay(storm.random.between(...ILL_MS))
  receiver.health = 'well'
  fault.to = Date.now()
}
