/** Embedded PostgreSQL in a worker thread. When the thread ends by itself, it is restarted with an
 *  empty database. */
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { PgliteRequest, PgliteResponse } from './pglite-worker.ts'

export interface Pglite {
  query<T>(text: string, values?: unknown[]): Promise<{ rows: T[] }>
  /** Runs a script; returns the rows of each of its statements. */
  exec(text: string): Promise<{ rows: unknown[] }[]>
}

export interface RunningPglite extends Pglite {
  /** How often embedded PostgreSQL has restarted. */
  restarts(): number
  stop(): Promise<void>
}

interface PgliteStart {
  /** Session settings. */
  settings: Record<string, string>
  /** A thread that the caller has started. Only the first start uses it. */
  thread?: Promise<Thread>
  /** Creates the queues again after a restart. After the first start, the caller creates them. */
  rebuild(fresh: Pglite): Promise<void>
  log: Logger
}

const RESTART_MS = 1_000
/** Small, because a young generation of the default size would take memory for objects that are
 *  mostly garbage. Large enough for the results of a large lease. */
const MAX_YOUNG_GENERATION_MB = 12

/** Starts embedded PostgreSQL. Between the end of a thread and the restart, every statement
 *  throws. */
export async function startPglite({
  settings,
  thread: firstThread = startThread(),
  rebuild,
  log,
}: PgliteStart): Promise<RunningPglite> {
  const settingsText = Object.entries(settings)
    .map(([name, value]) => `set ${name} = ${value};`)
    .join(' ')
  let thread: Thread | undefined
  let restarting: Promise<void> | undefined
  let restarts = 0
  let isStopped = false

  function use(started: Thread): void {
    thread = started
    started.ended.then((error) => {
      thread = undefined
      if (isStopped) return
      log.error({ err: error }, 'The embedded queue ended; rebuilding it from the records')
      restarting = restart()
    })
  }

  async function restart(): Promise<void> {
    while (!isStopped) {
      const fresh = await startRebuilt().catch((error: unknown) =>
        log.error({ err: error }, 'The embedded queue could not be restarted; trying again'),
      )
      if (fresh) {
        restarts++
        return use(fresh)
      }
      await delay(RESTART_MS)
    }
  }

  async function startRebuilt(): Promise<Thread | undefined> {
    const fresh = await startThread()
    try {
      await fresh.run(settingsText)
      await rebuild(clientOf(() => fresh))
      if (!isStopped) return fresh
      await fresh.end()
      return undefined
    } catch (error) {
      await fresh.end()
      throw error
    }
  }

  const first = await firstThread
  await first.run(settingsText)
  use(first)
  return {
    ...clientOf(() => thread),
    restarts: () => restarts,
    async stop() {
      isStopped = true
      await thread?.end()
      await restarting
    },
  }
}

function clientOf(currentThread: () => Thread | undefined): Pglite {
  const run: Thread['run'] = async (text, values) => {
    const thread = currentThread()
    if (!thread) throw new Error('The embedded queue is not running')
    return thread.run(text, values)
  }
  return {
    async query<T>(text: string, values: unknown[] = []) {
      const [rows = []] = await run(text, values)
      return { rows: rows as T[] }
    },
    exec: async (text) => (await run(text)).map((rows) => ({ rows })),
  }
}

/** A worker thread with embedded PostgreSQL. Its database is empty at first. */
export interface Thread {
  run(text: string, values?: unknown[]): Promise<unknown[][]>
  /** Resolves with the reason when the thread has ended. */
  ended: Promise<Error>
  end(): Promise<void>
}

interface PendingRequest {
  resolve(rows: unknown[][]): void
  reject(error: Error): void
}

/** Rejects when the thread ends before it is ready. */
export async function startThread(): Promise<Thread> {
  const worker = new Worker(new URL('./pglite-worker.ts', import.meta.url), {
    resourceLimits: { maxYoungGenerationSizeMb: MAX_YOUNG_GENERATION_MB },
  })
  const pending = new Map<number, PendingRequest>()
  let nextId = 0
  let reason = new Error('The embedded queue has ended')
  let hasEnded = false
  worker.on('error', (error) => {
    reason = error as Error
  })
  const ended = new Promise<Error>((resolve) => {
    worker.on('exit', () => {
      hasEnded = true
      for (const request of pending.values()) request.reject(reason)
      pending.clear()
      resolve(reason)
    })
  })
  const ready = new Promise<void>((resolve) => worker.once('message', () => resolve()))
  worker.on('message', (message: PgliteResponse | 'ready') => {
    if (message === 'ready') return
    const request = pending.get(message.id)
    pending.delete(message.id)
    if ('rows' in message) request?.resolve(message.rows)
    else
      request?.reject(Object.assign(new Error(message.error.message), { code: message.error.code }))
  })
  await Promise.race([ready, ended.then((error) => Promise.reject(error))])
  return {
    run: (text, values) =>
      new Promise((resolve, reject) => {
        if (hasEnded) return reject(reason)
        const id = nextId++
        pending.set(id, { resolve, reject })
        worker.postMessage({ id, text, values } satisfies PgliteRequest)
      }),
    ended,
    end: async () => void (await worker.terminate()),
  }
}
