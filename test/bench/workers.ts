/** How far one leader feeds several worker processes on one PostgreSQL. On a machine with few cores
 *  the rates say little. The CPU time of a delivery, the slots in use and the moments with an empty
 *  queue do. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { listUnqueued } from '../../records/scheduled-attempts.ts'
import { readConfig } from '../../server/config.ts'
import { MAX_IN_FLIGHT } from '../../webhooks/policy/fairness.ts'
import { until } from '../helpers.ts'
import { type Child, startChild } from './child.ts'
import { type OpenCounters, startCounters } from './counters.ts'
import { MAX_DRAIN_MS, WARM_UP } from './drain.ts'
import type { EngineProcess, Progress } from './engine.ts'
import { figure, type Result } from './result.ts'
import {
  type Bench,
  type Environment,
  emitEvents,
  openDatabases,
  STATISTICS,
  subscribe,
} from './set-up.ts'
import type { Sink } from './sink.ts'

const WORKERS = [1, 2, 4]
/** A usual receiver, and one that is so slow that two cores can fill the slots of all workers. */
const RESPONSE_MS = [150, 1_000]
const SAMPLE_MS = 100
/** Attempts that are due so much later wait in the queue: see `HORIZON_MS` of the engine. */
const LATER_MS = 240_000

type Engine = Child<EngineProcess>

/** The state of all processes at one moment. */
interface Sample {
  engines: Progress[]
  postgresMs: number
  isQueueEmpty: boolean
}

export async function workers(bench: Bench): Promise<Result[]> {
  if (bench.database === 'sqlite') return []
  bench.progress('one leader')
  const results = await measureLeader(bench)
  let repeated = 0
  for (const responseMs of RESPONSE_MS)
    for (const count of WORKERS) {
      const name = `${count} × ${responseMs} ms`
      bench.progress(name)
      const drained = await drainWith(bench, count, responseMs)
      results.push(...summarize(name, drained.samples))
      repeated += drained.repeated
    }
  return [...results, figure({ what: 'repeated', unit: '', goal: { atMost: 0 } }, repeated)]
}

interface Installation extends AsyncDisposable {
  environment: Environment
  db: Db
  counters: OpenCounters
}

/** With a PostgreSQL server of its own, whose CPU time contains nothing else. */
async function newInstallation(): Promise<Installation> {
  await using starting = new AsyncDisposableStack()
  const databases = starting.use(await openDatabases(['postgres'], STATISTICS))
  const environment = await databases.newEnvironment('postgres')
  const counters = starting.use(await startCounters(process.pid, environment.DATABASE_URL))
  const db = openDatabase(readConfig(environment).database)
  starting.defer(() => db.close())
  const started = starting.move()
  return { environment, db, counters, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

/** The cost of the leader alone: it queues attempts that are not due yet, and marks them in the
 *  records. It marks a due attempt only when the queue has it for longer than a second. */
async function measureLeader(bench: Bench): Promise<Result[]> {
  await using installation = await newInstallation()
  await using engine = startChild<EngineProcess>('engine.ts')
  const { environment, db, counters } = installation
  const origins = Array.from({ length: 200 }, (_, index) => `http://127.0.0.1:${index + 1}`)
  const events = bench.quick ? 10 : 250
  await emitEvents(environment, await subscribe(environment, origins), events)
  await db.write('deliveries').increment('next_attempt_at', LATER_MS)
  await counters.analyze()
  const times: number[] = await db
    .read('deliveries')
    .orderBy('next_attempt_at')
    .pluck('next_attempt_at')
  const cpuWhenQueued = async (time: number | undefined) => {
    const isQueued = async () => (await listUnqueued(db, new Date(time ?? 0), [], 1)).length === 0
    await until('the attempts are queued', isQueued, MAX_DRAIN_MS)
    const { cpuMicros } = await engine.call('progress')
    return { cpuMicros, postgresMs: (await counters.read()).postgresMs }
  }
  await engine.call('start', environment)
  const warm = Math.floor(times.length * WARM_UP)
  const first = await cpuWhenQueued(times[warm])
  const last = await cpuWhenQueued(times.at(-1))
  const count = times.length - warm
  const what = 'one leader queues 1,000 attempts: CPU of'
  return [
    figure({ what: `${what} the leader`, unit: 'ms' }, (last.cpuMicros - first.cpuMicros) / count),
    figure(
      { what: `${what} PostgreSQL`, unit: 'ms' },
      ((last.postgresMs - first.postgresMs) / count) * 1000,
    ),
  ]
}

async function drainWith(
  bench: Bench,
  count: number,
  responseMs: number,
): Promise<{ samples: Sample[]; repeated: number }> {
  await using installation = await newInstallation()
  await using processes = new AsyncDisposableStack()
  const sink = processes.use(startChild<Sink>('sink.ts'))
  const origins = await sink.call('listen')
  for (const index of origins.keys()) await sink.call('respondAfter', index, responseMs)
  const { environment } = installation
  // Two webhooks for each origin: the concurrency limits of one would leave slots empty.
  const accounts = await subscribe(environment, [...origins, ...origins])
  const engines = Array.from({ length: count }, () =>
    processes.use(startChild<EngineProcess>('engine.ts')),
  )
  for (const engine of engines) await engine.call('start', environment)
  const events = bench.quick ? 20 : 150
  await emitEvents(environment, accounts, events)
  const samples = await sampleDrain(installation, engines, origins.length * 2 * events)
  const { repeated } = await sink.call('summary')
  return { samples, repeated }
}

/** Samples until all deliveries of the backlog are made. Leaves out the start, and the end, when
 *  the backlog no longer fills the slots. */
async function sampleDrain(
  { db, counters }: Installation,
  engines: Engine[],
  backlog: number,
): Promise<Sample[]> {
  const samples: Sample[] = []
  const end = backlog - 2 * engines.length * MAX_IN_FLIGHT
  const sample = async (): Promise<boolean> => {
    const progress = await Promise.all(engines.map((engine) => engine.call('progress')))
    const count = sum(progress, ({ count }) => count)
    if (count >= backlog * WARM_UP && count <= end) {
      const { postgresMs } = await counters.read()
      const ready = db
        .read('pgboss.job')
        .where({ name: 'deliveries' })
        .whereNot({ state: 'active' })
      samples.push({ engines: progress, postgresMs, isQueueEmpty: !(await ready.first('id')) })
    }
    return count >= backlog
  }
  const deadline = performance.now() + MAX_DRAIN_MS
  while (!(await sample())) {
    if (performance.now() > deadline) throw new Error('The backlog was not drained in time')
    await delay(SAMPLE_MS)
  }
  return samples
}

function summarize(name: string, samples: Sample[]): Result[] {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last || first === last) throw new Error('The backlog was too short to measure')
  const difference = (of: (progress: Progress) => number): number =>
    sum(last.engines, of) - sum(first.engines, of)
  const count = difference((engine) => engine.count)
  const seconds = difference(({ at }) => at) / last.engines.length / 1000
  const slots = sum(
    samples,
    ({ engines }) => sum(engines, ({ inFlight }) => inFlight) / engines.length,
  )
  const isEmpty = samples.filter(({ isQueueEmpty }) => isQueueEmpty)
  return [
    figure({ what: `${name}: drained`, unit: '/s' }, count / seconds),
    figure(
      { what: `${name}: CPU of 1,000, workers`, unit: 'ms' },
      difference(({ cpuMicros }) => cpuMicros) / count,
    ),
    figure(
      { what: `${name}: CPU of 1,000, PostgreSQL`, unit: 'ms' },
      ((last.postgresMs - first.postgresMs) / count) * 1000,
    ),
    figure(
      { what: `${name}: slots in use, of ${MAX_IN_FLIGHT}`, unit: '' },
      slots / samples.length,
    ),
    figure(
      { what: `${name}: moments with an empty queue, of 100`, unit: '' },
      (isEmpty.length / samples.length) * 100,
    ),
  ]
}

function sum<Row>(rows: Row[], of: (row: Row) => number): number {
  return rows.reduce((total, row) => total + of(row), 0)
}
