/** Embedded PostgreSQL on its thread, which is started again when it ends by itself. What was in it is lost then. */
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { PgliteAnswer, PgliteCall, PgliteOptions } from './pglite-worker.ts'

export interface Pglite {
  query<T>(text: string, values?: unknown[]): Promise<{ rows: T[] }>
  /** Runs a script; returns the rows of each of its statements. */
  exec(text: string): Promise<{ rows: unknown[] }[]>
}

export interface RunningPglite extends Pglite {
  stop(): Promise<void>
}

export interface PgliteStart extends PgliteOptions {
  /** Makes what must be in it, once it was started again. */
  remake(fresh: Pglite): Promise<void>
  /** It was started again and remade. */
  onLost(): void
  log: Logger
}

const RESTART_MS = 1_000

/** Between an end and the next start every statement is refused. */
export async function startPglite({
  remake,
  onLost,
  log,
  ...options
}: PgliteStart): Promise<RunningPglite> {
  let thread: Thread | undefined
  let starting: Promise<void> | undefined
  let stopped = false

  function use(started: Thread): void {
    thread = started
    started.ended.then((error) => {
      thread = undefined
      if (stopped) return
      log.error({ err: error }, 'the embedded queue has ended, and is made again from the records')
      starting = startAgain()
    })
  }

  async function startAgain(): Promise<void> {
    while (!stopped) {
      const fresh = await startThread(options).catch(refused)
      if (fresh && (await isRemade(fresh))) {
        use(fresh)
        return onLost()
      }
      await delay(RESTART_MS)
    }
  }

  async function isRemade(fresh: Thread): Promise<boolean> {
    try {
      await remake(statementsOf(() => fresh))
      if (!stopped) return true
    } catch (error) {
      refused(error)
    }
    await fresh.end()
    return false
  }

  function refused(error: unknown): undefined {
    log.error(
      { err: error },
      'the embedded queue could not be started again, and will be tried again',
    )
  }

  use(await startThread(options))
  return {
    ...statementsOf(() => thread),
    async stop() {
      stopped = true
      await thread?.end()
      await starting
    },
  }
}

function statementsOf(current: () => Thread | undefined): Pglite {
  const run: Thread['run'] = async (text, values) => {
    const thread = current()
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

interface Thread {
  run(text: string, values?: unknown[]): Promise<unknown[][]>
  /** Resolves when it has ended, with the reason. */
  ended: Promise<Error>
  end(): Promise<void>
}

/** Rejects when it ends before it is ready. */
async function startThread(options: PgliteOptions): Promise<Thread> {
  const worker = new Worker(new URL('./pglite-worker.ts', import.meta.url), {
    workerData: options,
    // It makes next to nothing that lasts: what is short-lived needs no more room than this.
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  })
  const waiting = new Map<
    number,
    { resolve(rows: unknown[][]): void; reject(error: Error): void }
  >()
  let calls = 0
  let reason = new Error('The embedded queue has ended')
  let isOver = false
  worker.on('error', (error) => {
    reason = error as Error
  })
  const ended = new Promise<Error>((resolve) => {
    worker.on('exit', () => {
      isOver = true
      for (const call of waiting.values()) call.reject(reason)
      waiting.clear()
      resolve(reason)
    })
  })
  const ready = new Promise<void>((resolve) => worker.once('message', () => resolve()))
  worker.on('message', (answer: PgliteAnswer | 'ready') => {
    if (answer === 'ready') return
    const call = waiting.get(answer.id)
    waiting.delete(answer.id)
    if ('rows' in answer) call?.resolve(answer.rows)
    else call?.reject(Object.assign(new Error(answer.error.message), { code: answer.error.code }))
  })
  await Promise.race([ready, ended.then((error) => Promise.reject(error))])
  return {
    run: (text, values) =>
      new Promise((resolve, reject) => {
        if (isOver) return reject(reason)
        const id = calls++
        waiting.set(id, { resolve, reject })
        worker.postMessage({ id, text, values } satisfies PgliteCall)
      }),
    ended,
    end: async () => void (await worker.terminate()),
  }
}

/** Enough for the results of a large claim. */
const YOUNG_MB = 12
