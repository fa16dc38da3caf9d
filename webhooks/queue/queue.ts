/** The queue: pg-boss on PostgreSQL, or on an embedded one in memory. Nothing that is only here is worth keeping: the records make it anew.
 *  The only file that knows pg-boss. */
import { hash } from 'node:crypto'
import pg from 'pg'
import { type ConstructorOptions, fromKnex, fromPglite, PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import type { Trx } from '../../records/database/transaction.ts'
import type { PlannedAttempt } from '../../records/due-work.ts'
import { type Pglite, startPglite } from './pglite.ts'

/** The database behind DATABASE_URL: pg-boss works around the features that some of them lack. */
export type QueueBackend = 'postgres' | 'citus' | 'cockroachdb' | 'yugabytedb'

/** A planned attempt that this process holds until it drops, releases or loses it. */
export interface Claim {
  planned: PlannedAttempt
  jobId: string
  /** Counts the claims of a job: a claim that was lost and taken by another no longer counts. */
  retryCount: number
}

/** Work in the background. Rows are the truth here too: `due` names those that need work, `run` works at one of them. */
export interface BackgroundJobs {
  /** Ids (UUIDs) of what needs work now. */
  due(now: Date): Promise<string[]>
  /** Must end soon after `signal` aborts, in a state in which `due` names the id again. What it throws is logged. */
  run(id: string, signal: AbortSignal): Promise<void>
}

export interface Queue {
  /** Adds attempts, those it has excepted. */
  add(planned: PlannedAttempt[], now: Date): Promise<void>
  /** Attempts that are due, at most `limit`, and of each webhook so many that at most `share` are claimed, over all processes.
   *  None back may mean that all shares are used up. */
  claim(limit: number, share: number, leaveOut?: string[]): Promise<Claim[]>
  /** Says that the claims are still being worked at. Returns the ids of the jobs that are: others have been taken by somebody else. */
  touch(claims: Claim[]): Promise<Set<string>>
  /** Removes attempts that are settled, but not those whose claim was lost to somebody else. Returns the ids of the jobs that it removed.
   *  `trx`: only once that transaction commits (PostgreSQL). */
  drop(claims: Claim[], trx?: Trx): Promise<Set<string>>
  /** Gives claims back, for whoever comes next. */
  release(claims: Claim[]): Promise<void>
  /** Calls `heard` with the payload of each NOTIFY of a channel, and without one after each reconnection. */
  listen(channel: string, heard: (payload?: string) => void): Promise<void>
  /** Makes a queue for background work and works at it. */
  work(name: string, run: BackgroundJobs['run']): Promise<{ add(ids: string[]): Promise<void> }>
  isReady(): Promise<boolean>
  stop(graceMs: number): Promise<void>
}

export interface QueueOptions {
  /** Where PostgreSQL is. Undefined: embedded, in memory. */
  databaseUrl?: string
  /** `postgres`, unless given. */
  backend?: QueueBackend
  /** Where the embedded one may keep what makes its next start quicker. */
  cacheDir?: string
  /** The longest that one attempt takes. */
  attemptTimeoutMs: number
  /** The embedded one has ended and was made again, empty. */
  onEmptied?: () => void
  log: Logger
}

const ATTEMPTS = 'deliveries'
/** A claim that is not touched for this long is somebody else's. pg-boss takes no less than 10. */
const HEARTBEAT_SECONDS = 10
/** How often lapsed claims are looked for. Where the process that did it last has died, it takes up to twice as long. */
const SUPERVISE_SECONDS = 2
/** Kept for storing the result of an attempt, before another process may make it again. */
const SETTLING_SECONDS = 45
/** A job is never given up: how often an attempt is made is not the queue's to say. */
const NO_LIMIT = 1_000_000
const BOSS_CONNECTIONS = 6
/** A claim that a crash of the database forgets is made again: no need to wait for the disk. And of a table that is empty one moment and full
 *  the next, the planner knows nothing: without this it reads and sorts the whole queue for every fetch, instead of its first rows by index.
 *  Plans are kept, and those that were made while it was empty must do for a full one. Where only a sequential scan will do, PostgreSQL before 18
 *  thinks it so dear that it would compile it. */
const SESSION = {
  synchronous_commit: 'off',
  enable_bitmapscan: 'off',
  enable_seqscan: 'off',
  jit: 'off',
}
/** The embedded one has nothing to write a log for, and no queue of it is ever removed: to look for a job's queue with each job takes a tenth of
 *  its time. */
const LIGHTER = `
  alter table pgboss.job_common set unlogged;
  alter table pgboss.job_common drop constraint if exists q_fkey, drop constraint if exists dlq_fkey`
/** A connection that the network has forgotten must not hold up the pump for ever. Long enough for the queue's own migrations. */
const LIMITS = { keepAlive: true, connectionTimeoutMillis: 5_000, query_timeout: 30_000 }
/** The embedded one has nobody who frees what deleted jobs have left, nor the log, and would grow with every delivery; slowly, by what pg-boss
 *  notes of its rounds, even when there are none. */
const TIDY = ['vacuum pgboss.job_common', 'checkpoint']
const TIDY_AFTER = 10_000
const TIDY_MS = 60_000
const CLAIM_STEP = 16
const BACKGROUND_CONCURRENCY = 2

interface QueueSettings {
  policy: 'standard' | 'exclusive'
  retryLimit: number
  expireInSeconds: number
}

export async function startQueue(options: QueueOptions): Promise<Queue> {
  const {
    databaseUrl,
    backend = 'postgres',
    cacheDir,
    attemptTimeoutMs,
    onEmptied = () => undefined,
    log,
  } = options
  /** What there is, for when it must be made again. */
  const queues = new Map<string, QueueSettings>()
  const remake = async (fresh: Pglite): Promise<void> => {
    const maker = newBoss({ db: fromPglite(fresh), backend: 'pglite' }, log)
    try {
      await maker.start()
      await fresh.exec(LIGHTER)
      for (const [name, settings] of queues) await makeQueue(maker, name, settings)
    } finally {
      await maker.stop({ graceful: false })
    }
  }
  const embedded =
    databaseUrl === undefined
      ? await startPglite({ cacheDir, settings: SESSION, remake, onLost: onEmptied, log })
      : undefined
  const boss = newBoss(
    embedded
      ? { db: fromPglite(embedded), backend: 'pglite' }
      : { ...connectionTo(databaseUrl), backend },
    log,
  )
  const addQueue = async (name: string, settings: QueueSettings): Promise<void> => {
    queues.set(name, settings)
    await makeQueue(boss, name, settings)
  }
  try {
    await boss.start()
    await embedded?.exec(LIGHTER)
    await addQueue(ATTEMPTS, {
      policy: 'standard',
      retryLimit: NO_LIMIT,
      expireInSeconds: Math.ceil(attemptTimeoutMs / 1000) + SETTLING_SECONDS,
    })
  } catch (error) {
    await boss.stop({ graceful: false }).catch(() => undefined)
    await embedded?.stop()
    throw error
  }

  let droppedSince = 0
  const tidy = (): void => {
    droppedSince = 0
    for (const text of TIDY)
      embedded
        ?.exec(text)
        .catch((error: unknown) =>
          log.warn({ err: error }, 'the embedded queue could not be tidied'),
        )
  }
  const tidying = embedded && setInterval(tidy, TIDY_MS)
  const stopping = new AbortController()
  const listeners: { close(): Promise<void> }[] = []
  const within = (trx: Trx | undefined) => (trx ? { db: fromKnex(trx.sql) } : {})
  const attemptsOf = (claims: Claim[]) =>
    claims.map(({ jobId, retryCount }) => ({ id: jobId, retryCount }))
  /** Jobs whose rows a transaction is about to remove or has, and the renewal under way. Both lock rows, each in an order of its own: at the
   *  same time they could wait for each other. */
  const leaving = new Set<string>()
  let touching: Promise<unknown> = Promise.resolve()

  return {
    async add(planned, now) {
      if (planned.length === 0) return
      const jobs = planned.map((attempt) => ({
        id: jobId(attempt),
        data: attempt,
        group: { id: attempt.webhookId },
        // Due already: at once by the database's own clock, which may be behind ours.
        ...(attempt.dueAt > now.getTime() ? { startAfter: new Date(attempt.dueAt) } : {}),
      }))
      await boss.insert(ATTEMPTS, jobs)
    },
    async claim(limit, share, leaveOut = []) {
      // Each number is a statement of its own, with a plan of its own.
      const batchSize = limit < CLAIM_STEP ? limit : limit - (limit % CLAIM_STEP)
      const jobs = await boss.fetch<PlannedAttempt>(ATTEMPTS, {
        batchSize,
        groupConcurrency: share,
        ignoreGroups: leaveOut,
      })
      return jobs.map(({ id, retryCount, data }) => ({ planned: data, jobId: id, retryCount }))
    },
    async touch(claims) {
      const touched = touching.then(async () => {
        const staying = claims.filter(({ jobId }) => !leaving.has(jobId))
        return staying.length === 0
          ? new Set<string>()
          : settledOf(await boss.touch(ATTEMPTS, attemptsOf(staying)))
      })
      touching = touched.catch(() => undefined)
      return touched
    },
    async drop(claims, trx) {
      if (claims.length === 0) return new Set()
      if (trx) {
        for (const { jobId } of claims) leaving.add(jobId)
        const stay = (): void => {
          for (const { jobId } of claims) leaving.delete(jobId)
        }
        trx.onEnd(stay)
        await touching
      }
      const dropped = settledOf(await boss.deleteJob(ATTEMPTS, attemptsOf(claims), within(trx)))
      droppedSince += dropped.size
      if (droppedSince >= TIDY_AFTER) tidy()
      return dropped
    },
    async release(claims) {
      if (claims.length > 0) await boss.fail(ATTEMPTS, attemptsOf(claims))
    },
    async listen(channel, heard) {
      const listener = await boss.getDb().listen?.(channel, heard, () => heard())
      if (listener) listeners.push(listener)
    },
    async work(name, run) {
      // Exclusive: one job for each id at a time, whichever node asked.
      await addQueue(name, { policy: 'exclusive', retryLimit: 0, expireInSeconds: 12 * 3600 })
      /** A queue that was made again knows nothing of them. */
      const running = new Set<string>()
      const worker = await boss.work<{ id: string }>(
        name,
        {
          localConcurrency: BACKGROUND_CONCURRENCY,
          pollingIntervalSeconds: 0.5,
          heartbeatRefreshSeconds: 3,
        },
        async ([job]) => {
          if (!job || stopping.signal.aborted) return
          const { id } = job.data
          if (running.has(id)) return
          running.add(id)
          await run(id, AbortSignal.any([job.signal, stopping.signal])).catch((error: unknown) => {
            log.error({ err: error, queue: name, id }, 'work in the background failed')
          })
          running.delete(id)
        },
      )
      return {
        async add(ids) {
          if (ids.length === 0) return
          await boss.insert(
            name,
            ids.map((id) => ({ data: { id }, singletonKey: id })),
          )
          boss.notifyWorker(worker)
        },
      }
    },
    async isReady() {
      await boss.getDb().executeSql('select 1')
      return true
    },
    async stop(graceMs) {
      stopping.abort()
      clearInterval(tidying)
      await Promise.all(listeners.map((listener) => listener.close()))
      await boss.stop({ graceful: true, timeout: graceMs })
      await embedded?.stop()
    },
  }
}

/** The jobs that a command reached. Its type does not say so, but pg-boss's own workers go by it. */
function settledOf(response: object): Set<string> {
  const { settled } = response as { settled?: string[] }
  if (settled === undefined) throw new Error('pg-boss no longer says which jobs a command reached')
  return new Set(settled)
}

/** The same planned attempt is the same job, whoever adds it and however often. */
function jobId({ deliveryId, dueAt }: PlannedAttempt): string {
  const hex = hash('sha256', `${deliveryId}:${dueAt}`)
  // RFC 9562 §5.8: version 8 is for ids made in ways of one's own.
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

function connectionTo(connectionString: string | undefined) {
  const settings = Object.entries(SESSION).map(([name, value]) => `-c ${name}=${value}`)
  const pool = { application_name: 'muster-queue', max: BOSS_CONNECTIONS, Client: PreparingClient }
  return { connectionString, options: settings.join(' '), ...pool, ...LIMITS }
}

/** Names the statements that have parameters: PostgreSQL plans each once per connection. pg-boss has few, and planning one takes longer than
 *  running it for a few jobs. */
class PreparingClient extends pg.Client {
  // biome-ignore lint/suspicious/noExplicitAny: one of the many forms of `query`, and as it is for all others.
  override query(...given: any[]): any {
    const [text, values, ...others] = given
    const query = super.query as (...args: unknown[]) => unknown
    if (typeof text !== 'string' || !Array.isArray(values) || values.length === 0)
      return query.apply(this, given)
    return query.call(this, { name: hash('sha1', text), text, values }, ...others)
  }
}

function newBoss(place: ConstructorOptions, log: Logger): PgBoss {
  const boss = new PgBoss({
    ...place,
    schedule: false,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    warningQueueSize: NO_LIMIT,
  })
  boss.on('error', (error) => log.error({ err: error }, 'the queue reported an error'))
  boss.on('warning', (warning) => log.warn({ warning }, 'the queue reported a warning'))
  return boss
}

async function makeQueue(boss: PgBoss, name: string, settings: QueueSettings): Promise<void> {
  const { policy, ...changeable } = {
    ...settings,
    heartbeatSeconds: HEARTBEAT_SECONDS,
    retryDelay: 0,
  }
  await boss.createQueue(name, { policy, ...changeable })
  await boss.updateQueue(name, changeable)
}
