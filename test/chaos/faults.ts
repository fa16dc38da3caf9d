/** The faults, their timing, and the attempts that they may repeat. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Cluster, Node } from './cluster.ts'
import type { Random } from './random.ts'
import { type ChaosReceiver, illnesses } from './receivers.ts'

export const faultKinds = [
  'API node killed',
  'worker killed',
  'worker frozen',
  'PostgreSQL killed',
  'connections cut',
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
  /** Number of affected processes with attempts. 0 means that the fault explains no repeated attempt. */
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
  progress: (text: string) => void
}

export interface StormOptions {
  /** No fault starts after this time, once each kind has occurred. Epoch milliseconds. */
  until: number
  /** Minimum and maximum rest between the starts of two faults. */
  restMs: [number, number]
  /** Rest after each round of all kinds. It exceeds the lease, so that repeated attempts are observed. */
  calmMs: number
  without?: FaultKind[]
}

/** A lease expires 10 s after its last renewal, and other workers check every 5 s. */
const LEASE_MS = 15_000
const FROZEN_MS: [number, number] = [LEASE_MS + 2_000, LEASE_MS + 6_000]
const DEAD_MS: [number, number] = [0, 2_000]
const DATABASE_AWAY_MS: [number, number] = [500, 5_000]
const ILL_MS: [number, number] = [2_000, 6_000]
const CUT_SHARE = 0.5

/** One kind of fault: its possible targets and its effect. */
interface Blow {
  kind: FaultKind
  targets: string[]
  strike(target: string): Promise<void>
}

/** Causes faults of every kind at random times, also several at once. Resolves when all has recovered. */
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
    const target = random.pick((blow?.targets ?? []).filter((name) => !struck.has(name)))
    if (!blow || target === undefined) continue
    isFirstTurn &&= rest.length > 0
    turn = rest.length > 0 ? rest : random.shuffled(blows)
    storm.progress(`${blow.kind}: ${target}`)
    struck.add(target)
    const strike = blow.strike(target).finally(() => struck.delete(target))
    // Rethrown below, after all other faults have ended.
    strike.catch(() => undefined)
    strikes.push(strike)
    if (rest.length === 0) await delay(Math.max(0, Math.min(calmMs, until - Date.now())))
  }
  await Promise.all(strikes)
}

function blowsOf(storm: Storm): Blow[] {
  const { cluster, receivers } = storm
  const nodesOf = (...roles: string[]): string[] =>
    cluster.nodes.filter(({ role }) => roles.includes(role)).map(({ name }) => name)
  const onNode = (strike: (node: Node) => Promise<void>) => (name: string) => {
    const node = cluster.nodes.find((each) => each.name === name)
    return node ? strike(node) : Promise.resolve()
  }
  const databases = cluster.postgres ? ['PostgreSQL'] : []
  return [
    {
      kind: 'API node killed',
      targets: nodesOf('api'),
      strike: onNode((node) => killNode(storm, 'API node killed', node)),
    },
    {
      kind: 'worker killed',
      targets: nodesOf('worker', 'all'),
      strike: onNode((node) => killNode(storm, 'worker killed', node)),
    },
    {
      kind: 'worker frozen',
      // In embedded mode there is one node.
      targets: cluster.postgres ? nodesOf('worker') : nodesOf('all'),
      strike: onNode((node) => freezeNode(storm, node)),
    },
    { kind: 'PostgreSQL killed', targets: databases, strike: () => killPostgres(storm) },
    { kind: 'connections cut', targets: databases, strike: () => cutConnections(storm) },
    ...illnesses.map(
      (illness): Blow => ({
        kind: `receiver ${illness}`,
        targets: receivers.map(({ name }) => name),
        async strike(name) {
          const receiver = receivers.find((each) => each.name === name)
          if (receiver) await fallIll(storm, receiver, illness)
        },
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

async function killPostgres(storm: Storm): Promise<void> {
  const { cluster, database, random } = storm
  if (!cluster.postgres) return
  const fault = begin(storm, {
    kind: 'PostgreSQL killed',
    target: 'PostgreSQL',
    engines: enginesOf(cluster),
  })
  await cluster.postgres.kill()
  database.epoch++
  await delay(random.between(...DATABASE_AWAY_MS))
  database.epoch++
  await cluster.postgres.restart()
  fault.to = Date.now()
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
