/** The memory of `muster serve`, compared with a bare Koa process. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { startChild } from './child.ts'
import { MAX_DRAIN_MS } from './drain.ts'
import { figure, median, type Result } from './result.ts'
import { startService } from './service.ts'
import { type Bench, type DatabaseKind, type Environment, emitEvents, subscribe } from './set-up.ts'
import type { Sink } from './sink.ts'

const MOST_MB: Record<DatabaseKind, number> = { sqlite: 400, postgres: 300 }
const POLL_MS = 500
/** The results of the last deliveries are stored within this time. */
const STORE_MS = 2_000

/** The most memory in MB. */
interface Peaks {
  firstStart: number
  laterStart: number
  drain: number
  bareKoa: number
}

export async function footprint(bench: Bench): Promise<Result[]> {
  const rounds: Peaks[] = []
  for (let round = 1; round <= (bench.quick ? 1 : 3); round++) {
    bench.progress(`round ${round}`)
    rounds.push(await measure(bench))
  }
  const reference = { name: 'bare Koa', value: median(rounds.map(({ bareKoa }) => bareKoa)) }
  const peak = (when: keyof Peaks, what: string): Result => {
    const value = median(rounds.map((round) => round[when]))
    const note = `${(value / reference.value).toFixed(1)} times bare Koa`
    const goal = { atMost: MOST_MB[bench.database] }
    return { ...figure({ what, unit: 'MB', goal, note }, value), reference }
  }
  return [
    peak('firstStart', 'most memory until the first start is ready'),
    peak('laterStart', 'most memory until a later start is ready'),
    peak('drain', 'most memory over a start and a backlog'),
  ]
}

async function measure(bench: Bench): Promise<Peaks> {
  const environment = await bench.newEnvironment()
  // Like a new installation, without a compile cache.
  const firstStart = await measureStart({ ...environment, NODE_DISABLE_COMPILE_CACHE: '1' })
  const laterStart = await measureStart(environment)
  const drain = await measureBacklog(bench)
  return { firstStart, laterStart, drain, bareKoa: await measureBareKoa() }
}

async function measureStart(environment: Environment): Promise<number> {
  await using service = await startService(environment)
  return peakMb(service.pid)
}

/** A later start with a backlog for 100 webhooks, until all of it is stored. */
async function measureBacklog(bench: Bench): Promise<number> {
  await using sink = startChild<Sink>('sink.ts')
  const environment = await bench.newEnvironment()
  const accounts = await subscribe(environment, await sink.call('listen'))
  const events = bench.quick ? 40 : 500
  await emitEvents(environment, accounts, events)
  await using service = await startService(environment)
  const deadline = performance.now() + MAX_DRAIN_MS
  while ((await sink.call('summary')).arrived < events * 100) {
    if (performance.now() > deadline) throw new Error('Not all deliveries arrived in time')
    await delay(POLL_MS)
  }
  await delay(STORE_MS)
  return peakMb(service.pid)
}

async function measureBareKoa(): Promise<number> {
  const koa = fork(fileURLToPath(new URL('bare-koa.js', import.meta.url)))
  try {
    const [port] = await once(koa, 'message')
    const { body } = await request(`http://127.0.0.1:${port}/`)
    await body.dump()
    return peakMb(Number(koa.pid))
  } finally {
    koa.kill()
  }
}

/** The sum of the most memory of the process and of each of its descendants. They may have had it
 *  at different times. */
function peakMb(pid: number): number {
  const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  let sum = (Number(kib) * 1024) / 1e6
  for (const child of children.split(' ').filter(Boolean)) sum += peakMb(Number(child))
  return sum
}
