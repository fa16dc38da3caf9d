/** One run: an installation under load, random faults, and the audit at the end. */
import { setTimeout as delay } from 'node:timers/promises'
import type { DatabaseKind } from '../bench/set-up.ts'
import { type Audit, audit } from './audit.ts'
import { type Cluster, openCluster } from './cluster.ts'
import { causeFaults, type Fault, type FaultKind, type FaultOptions } from './faults.ts'
import { startLoad } from './load.ts'
import { newRandom } from './random.ts'
import { type ChaosReceiver, startChaosReceiver } from './receivers.ts'

export interface ChaosOptions extends Pick<FaultOptions, 'restMs' | 'calmMs' | 'without'> {
  database: DatabaseKind
  /** How long faults happen. */
  forMs: number
  /** Determines kind, target, time and duration of the faults. */
  seed: string
  /** The time limit of an attempt. */
  timeoutMs: number
  /** Response time of the fourth receiver. Undefined: there is no fourth receiver. */
  slowReceiverMs?: number
  /** An orphaned attempt must be repeated within this time when there is no other fault. */
  orphanWithinMs: number
  progress: (text: string) => void
}

export interface Report extends Omit<Audit, 'broken'> {
  database: DatabaseKind
  seed: string
  seconds: number
  faults: Partial<Record<FaultKind, number>>
  /** Responses by status. `none` counts requests without a response. */
  responses: Record<string, number>
  responsesWithoutDatabase: Record<string, number>
  longestResponseMs: number
  /** The longest time from the spawning of a killed node until it was ready. */
  longestRestartMs: number
  /** From the end of the load until every delivery had ended. */
  settledMs: number
  /** One sentence for each broken promise. */
  broken: string[]
  /** The folder of the log files, when a promise was broken. */
  logs?: string
}

const PROGRESS_MS = 10_000
/** The longest time until a delivery ends after the faults: an expired lease, a time-out, a
 *  retry. */
const SETTLE_WITHIN_MS = 120_000
/** The longest time of a delivery during faults, which last seconds. If it takes longer, the others
 *  have starved it. */
const DELIVER_WITHIN_MS = 120_000
export const RECEIVERS = [
  'prompt receiver',
  'usual receiver',
  'leisurely receiver',
  'slow receiver',
] as const
/** Ten attempts that outlast every fault of a receiver, in a minute instead of days. */
const RETRY_DELAYS = '1,2,3,4,5,5,5,5,5'

export async function chaos(options: ChaosOptions): Promise<Report> {
  const { database: kind, seed, timeoutMs, slowReceiverMs, progress } = options
  const began = Date.now()
  const environment = { WEBHOOK_RETRY_DELAYS: RETRY_DELAYS, WEBHOOK_TIMEOUT_MS: String(timeoutMs) }
  await using cluster = await openCluster({ kind, environment })
  await using resources = new AsyncDisposableStack()
  const receivers = await openReceivers(cluster, resources, slowReceiverMs)
  await startNodes(cluster)
  progress('all nodes are ready')

  const database = { epoch: 0 }
  const faults: Fault[] = []
  const broken: string[] = []
  const load = startLoad({ cluster, seed, databaseEpoch: () => database.epoch })
  const ticking = setInterval(
    () => progress(`${sum(load.acknowledged)} changes acknowledged, ${faults.length} faults`),
    PROGRESS_MS,
  )
  const context = {
    cluster,
    receivers: [...receivers.values()],
    random: newRandom(seed),
    database,
    faults,
    broken,
    progress,
  }
  const { restMs, calmMs, without } = options
  await causeFaults(context, { until: Date.now() + options.forMs, restMs, calmMs, without })
  // Changes go on after the last fault, so that a node that does not work any more is noticed.
  await delay(2_000)
  await load.stop()

  progress('the faults are over: waiting for every delivery to end')
  const calmAt = Date.now()
  const unfinished = await waitForDeliveries(cluster)
  const settledMs = Date.now() - calmAt
  clearInterval(ticking)
  broken.push(...load.broken)
  if (unfinished > 0)
    broken.push(
      `${unfinished} deliveries have not ended within ${SETTLE_WITHIN_MS / 1000} s of calm`,
    )
  for (const { name, status } of await Promise.all(
    cluster.nodes.map(async (node) => ({ name: node.name, status: await node.stop() })),
  ))
    if (status !== 0) broken.push(`${name} ended with ${status} on SIGTERM`)

  progress('comparing records and requests')
  const { broken: brokenInRecords, ...audited } = await audit({ cluster, load, faults, receivers })
  broken.push(...brokenInRecords)
  const waitedMs = audited.longestUndisturbedOrphanMs
  if (waitedMs > options.orphanWithinMs)
    broken.push(`An orphaned attempt waited ${waitedMs} ms without another fault`)
  for (const [name, slowestMs] of Object.entries(audited.slowestDeliveryMs))
    if (slowestMs > DELIVER_WITHIN_MS) broken.push(`A delivery to the ${name} took ${slowestMs} ms`)
  if (broken.length > 0) cluster.keepLogs()
  return {
    database: kind,
    seed,
    seconds: Math.round((Date.now() - began) / 1000),
    faults: countBy(faults, ({ kind }) => kind),
    responses: Object.fromEntries(load.responses),
    responsesWithoutDatabase: Object.fromEntries(load.responsesWithoutDatabase),
    longestResponseMs: load.longestResponseMs,
    longestRestartMs: Math.max(
      0,
      ...faults.map(({ respawnedAt = 0, readyAt = 0 }) => readyAt - respawnedAt),
    ),
    settledMs,
    ...audited,
    broken,
    ...(broken.length > 0 ? { logs: cluster.directory } : {}),
  }
}

/** Starts the receivers and creates their webhooks. Returns the receivers by webhook ID. */
async function openReceivers(
  cluster: Cluster,
  resources: AsyncDisposableStack,
  slowReceiverMs: number | undefined,
): Promise<Map<string, ChaosReceiver>> {
  const receivers = new Map<string, ChaosReceiver>()
  const add = async (name: string, eventTypes: string[], afterMs: number): Promise<void> => {
    const receiver = resources.use(await startChaosReceiver({ name, eventTypes, afterMs }))
    receivers.set(await cluster.addWebhook(receiver.url, eventTypes), receiver)
  }
  const [prompt, usual, leisurely, slow] = RECEIVERS
  await add(prompt, ['*'], 0)
  await add(usual, ['*'], 50)
  await add(leisurely, ['*'], 200)
  if (slowReceiverMs !== undefined) await add(slow, ['job.created'], slowReceiverMs)
  return receivers
}

async function startNodes(cluster: Cluster): Promise<void> {
  if (cluster.kind === 'sqlite') return void (await cluster.addNode('all-1', 'all'))
  const roles = {
    'api-1': 'api',
    'all-1': 'all',
    'worker-1': 'worker',
    'worker-2': 'worker',
  } as const
  await Promise.all(Object.entries(roles).map(([name, role]) => cluster.addNode(name, role)))
}

/** Waits until all deliveries have ended. Returns the number of those that did not end in time. */
async function waitForDeliveries({ db }: Cluster): Promise<number> {
  const deadline = Date.now() + SETTLE_WITHIN_MS
  for (;;) {
    const [row] = await db
      .read('deliveries')
      .whereIn('state', ['pending', 'retrying'])
      .count({ unfinished: '*' })
    const unfinished = Number(row?.unfinished)
    if (unfinished === 0 || Date.now() > deadline) return unfinished
    await delay(200)
  }
}

function sum(counts: Map<string, number>): number {
  return counts.values().reduce((total, count) => total + count, 0)
}

function countBy<T, Key extends string>(
  items: T[],
  key: (item: T) => Key,
): Partial<Record<Key, number>> {
  const counts: Partial<Record<Key, number>> = {}
  for (const item of items) counts[key(item)] = (counts[key(item)] ?? 0) + 1
  return counts
}
