/** The delivery engine. A delivery passes its stages in this order, and each stage calls only later
 *  ones: enqueue.ts with backlog.ts (records → queue), leaser.ts (leases), deliver.ts (one
 *  attempt), store.ts (results → records). */

import type { Logger } from 'pino'
import type { Agent } from 'undici'
import { NOTIFY_CHANNEL } from '../../records/database/announcements.ts'
import type { PoolUse } from '../../records/database/knex-internals.ts'
import type { Db } from '../../records/database/open.ts'
import { ATTEMPTS_QUEUED, ATTEMPTS_SCHEDULED, JOBS_DUE } from '../../records/due-work.ts'
import { findEarliestScheduledAt } from '../../records/scheduled-attempts.ts'
import { listSlowWebhooks } from '../../records/slow-webhooks.ts'
import { Turns } from '../../runtime/turns.ts'
import { SLOW_AFTER, SLOW_ATTEMPT_MS } from '../policy/fairness.ts'
import type { BackgroundJobs } from '../queue/background-jobs.ts'
import type { QueuePlace } from '../queue/boss.ts'
import { type Queue, startQueue } from '../queue/queue.ts'
import { type ClientCertificate, readClientCertificate } from '../transport/client-certificate.ts'
import { headersOpener } from '../transport/custom-headers.ts'
import type { Cidr } from '../transport/egress.ts'
import { guardedAgent } from '../transport/guarded-agent.ts'
import { newNameLookup } from '../transport/name-lookup.ts'
import { openSecret, type SecretKeys, secretOpener } from '../transport/secret.ts'
import { type BackgroundSweep, startBackgroundSweep } from './background.ts'
import type { AttemptListener } from './deliver.ts'
import { Deliveries } from './deliveries.ts'
import { Enqueuer } from './enqueue.ts'
import { ImmediateAttempts } from './immediate-attempts.ts'
import { type EngineCounts, InFlight } from './in-flight.ts'
import { Leader } from './leader.ts'
import { LeaseRounds } from './lease-rounds.ts'
import { Leaser } from './leaser.ts'
import { PauseWatch } from './pause-watch.ts'
import { QueueLedger } from './queue-ledger.ts'
import { LeaseRenewal } from './renewal.ts'
import { ResultStore } from './store.ts'
import { WorkerSessions } from './worker-sessions.ts'

export interface EngineConfig {
  /** Private IP ranges that webhooks may reach. */
  webhookAllowedRanges: Cidr[]
  /** Carries the connections of webhooks to public IP addresses. */
  webhookProxy?: URL
  /** The files of the certificate for endpoints that ask for one. */
  webhookCertificateFiles?: ClientCertificate
  /** Delays before attempts 2, 3 and so on, each counted from the end of the previous attempt. */
  webhookRetryDelaysMs: number[]
  /** The longest time of one attempt, from the start of connecting to the end of the body. */
  webhookTimeoutMs: number
  /** The keys that encrypt signing secrets at rest. */
  secretKeys: SecretKeys
}

export interface EngineOptions extends QueuePlace {
  db: Db
  config: EngineConfig
  log: Logger
  now?: () => Date
  /** Reads the clock behind `now` again. Logs failures. */
  readClock?: () => Promise<void>
  /** How far ahead attempts are enqueued. Later ones stay in the records, where they do not slow
   *  down leases. */
  horizonMs?: number
  /** The name servers that look up endpoints, as `IP:port`. By default those of resolv.conf. */
  nameServers?: string[]
  /** Background work by queue name. */
  backgroundJobs?: Record<string, BackgroundJobs>
  onAttempt?: AttemptListener
}

export interface Engine {
  /** Whether attempts can be queued. Never throws. */
  ready(): Promise<boolean>
  /** Looks for due attempts and jobs now. Not needed after a transaction that announced them. */
  wake(): void
  stats(): EngineCounts
  isLeader(): boolean
  /** About how many due attempts in the queue are not leased: pg-boss counts every few seconds. */
  queueDepth(): Promise<number>
  /** Whether notifications of other nodes arrive. Undefined in embedded mode. */
  isListening(): Promise<boolean | undefined>
  /** The connection pools by name. */
  pools(): Record<string, PoolUse>
  /** How long the oldest due attempt has been due. Attempts of suspended accounts do not count. 0:
   *  no attempt is due. */
  oldestDueAgeMs(): Promise<number>
  /** Leases nothing more, finishes the attempts in flight for up to `graceMs`, stores their results
   *  and closes everything. Unfinished attempts stay in the records. */
  stop(graceMs: number): Promise<void>
}

const HORIZON_MS = 5 * 60_000
/** A new engine treats a webhook as slow if its attempts were slow within this time before the
 *  start. */
const SLOW_WITHIN_MS = 15 * 60_000
/** Part of the grace time that is reserved for storing results and closing. */
const CLOSING_MS = 2_000

/** When it throws, nothing is left open. */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { db, config, log, backgroundJobs = {}, now = () => new Date() } = options
  const { databaseUrl, thread, queuePoolSize, keepAliveMs } = options
  // Before the queue, because it throws if the files of the certificate cannot be used.
  const agent = newAgent(options)
  const queue = await startQueue({
    databaseUrl,
    thread,
    queuePoolSize,
    keepAliveMs,
    attemptTimeoutMs: config.webhookTimeoutMs,
    log,
  })
  const parts = newParts(options, { queue, agent }, now)
  const { inFlight, leader, leaser, enqueuer } = parts
  const sweeps: BackgroundSweep[] = []
  const wakeSweeps = (): void => {
    for (const sweep of sweeps) sweep.wake()
  }
  const wake = (): void => {
    leaser.wake()
    enqueuer.onScheduled()
    wakeSweeps()
  }
  parts.pause.onResume(wake)
  const subscriptions: (() => void)[] = []

  async function stop(graceMs: number): Promise<void> {
    for (const unsubscribe of subscriptions) unsubscribe()
    await stopParts(parts, sweeps, graceMs)
  }

  try {
    const since = new Date(now().getTime() - SLOW_WITHIN_MS)
    const slow = { since, slowMs: SLOW_ATTEMPT_MS, slowAttempts: SLOW_AFTER }
    inFlight.endpoints.rememberSlow(await listSlowWebhooks(db, slow))
    await enqueuer.start()
    for (const [name, jobs] of Object.entries(backgroundJobs))
      sweeps.push(await startBackgroundSweep({ queue, name, jobs, now, log }))
    subscriptions.push(
      db.subscribe(ATTEMPTS_SCHEDULED, enqueuer.onScheduled),
      db.subscribe(ATTEMPTS_QUEUED, leaser.wake),
      db.subscribe(JOBS_DUE, wakeSweeps),
    )
    if (databaseUrl !== undefined) await queue.listen(NOTIFY_CHANNEL, db.receiveNotification)
  } catch (error) {
    await stop(0)
    throw error
  }
  leaser.wake()

  return {
    ready: () => queue.isReady(),
    wake,
    stats: () => inFlight.counts(),
    isLeader: () => leader.isLeader,
    queueDepth: () => queue.attempts.countReady(),
    isListening: () => queue.isListening(),
    pools: () => queue.pools(),
    async oldestDueAgeMs() {
      const scheduledAt = await findEarliestScheduledAt(db)
      return scheduledAt === undefined ? 0 : Math.max(0, now().getTime() - scheduledAt)
    },
    stop,
  }
}

type Parts = ReturnType<typeof newParts>

function newAgent({ config, nameServers }: EngineOptions): Agent {
  const { webhookAllowedRanges, webhookProxy, webhookCertificateFiles } = config
  return guardedAgent(webhookAllowedRanges, {
    lookup: newNameLookup({ servers: nameServers }),
    proxy: webhookProxy,
    clientCertificate: webhookCertificateFiles && readClientCertificate(webhookCertificateFiles),
  })
}

function newParts(
  options: EngineOptions,
  { queue, agent }: { queue: Queue; agent: Agent },
  now: () => Date,
) {
  const { db, config, log, horizonMs = HORIZON_MS } = options
  const { readClock = async () => undefined, onAttempt = () => undefined } = options
  const { webhookTimeoutMs: timeoutMs, webhookRetryDelaysMs: delaysMs } = config
  const jobs = queue.attempts

  const inFlight = new InFlight()
  const workerSessions = queue.session && new WorkerSessions({ db, jobs, log })
  const ledger = new QueueLedger({ db, inFlight, workerSessions, now })
  const leader = new Leader(db, queue.session, ledger)
  const store = new ResultStore({ db, jobs, inFlight, ledger, leader, delaysMs, log })
  const pause = new PauseWatch(db, log)
  const deliveries = new Deliveries({
    db,
    jobs,
    inFlight,
    leader,
    pause,
    store,
    agent,
    openSecret: secretOpener(config.secretKeys),
    openHeaders: headersOpener(config.secretKeys),
    openUrl: (id, sealed) => openSecret(config.secretKeys, id, sealed),
    timeoutMs,
    now,
    readClock,
    log,
    onAttempt,
  })
  const leaseTurns = new Turns(1)
  const immediate = new ImmediateAttempts({
    jobs,
    inFlight,
    ledger,
    leader,
    deliveries,
    pause,
    leaseTurns,
    log,
  })
  const rounds = new LeaseRounds({ jobs, inFlight, deliveries, pause })
  const leaser = new Leaser({ db, inFlight, immediate, rounds, leaseTurns, ledger, leader, log })
  inFlight.onSlotFree(leaser.onSlotFree)
  const renewal = new LeaseRenewal({ jobs, inFlight, log })
  const enqueuer = new Enqueuer({
    db,
    queue,
    leader,
    ledger,
    inFlight,
    leaser,
    immediate,
    leaseTurns,
    workerSessions,
    horizonMs,
    delaysMs,
    now,
    log,
  })
  return {
    queue,
    agent,
    inFlight,
    leader,
    store,
    pause,
    deliveries,
    immediate,
    leaser,
    renewal,
    enqueuer,
    log,
  }
}

async function stopParts(parts: Parts, sweeps: BackgroundSweep[], graceMs: number): Promise<void> {
  const { queue, agent, inFlight, store, pause, deliveries, immediate, leaser, log } = parts
  const deadline = performance.now() + graceMs
  deliveries.stop()
  // `leaser` and `immediate` stop first: nothing may be leased while the other parts finish their
  // last queries.
  const drained = Promise.all([leaser.stop(), immediate.stop()]).then(() =>
    deliveries.drain(Math.max(0, graceMs - CLOSING_MS)),
  )
  await Promise.all([
    pause.stop(),
    parts.enqueuer.stop(),
    ...sweeps.map((sweep) => sweep.stop()),
    drained,
  ])
  await store.stop(Math.max(CLOSING_MS / 2, deadline - performance.now()))
  parts.renewal.stop()
  await queue.attempts
    .release(inFlight.list())
    .catch((error: unknown) => log.warn({ err: error }, 'Leases could not be released'))
  inFlight.clear()
  // Cuts off the remaining requests; their results could not be stored.
  await agent.destroy()
  await queue.stop(Math.max(CLOSING_MS / 2, deadline - performance.now()))
}
