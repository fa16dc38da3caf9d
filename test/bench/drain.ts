/** The speed at which a backlog of deliveries is sent and stored, compared with raw POSTs. */
import { until } from '../helpers.ts'
import { startChild } from './child.ts'
import type { EngineProcess } from './engine.ts'
import type { RawPosts } from './raw-posts.ts'
import { comparison, figure, type Goal, median, type Result, type Round } from './result.ts'
import { type Bench, type DatabaseKind, emitEvents, subscribe } from './set-up.ts'
import type { Sink } from './sink.ts'

const GOALS: Record<DatabaseKind, Goal> = { sqlite: { atLeast: 0.14 }, postgres: { atLeast: 0.22 } }
/** How long all attempts of a backlog may take. */
export const MAX_DRAIN_MS = 300_000
/** The share of the backlog that warms up and is not measured. Raw POSTs warm up for a round. */
export const WARM_UP = 0.25

interface Drained extends Round {
  lost: number
  repeated: number
  /** CPU time of the engine process, in seconds per 1,000 deliveries. */
  cpu: number
}

export async function drain(bench: Bench): Promise<Result[]> {
  const rounds: Drained[] = []
  for (let round = 1; round <= (bench.quick ? 1 : 3); round++) {
    bench.progress(`round ${round}`)
    rounds.push(await drainOnce(bench, bench.quick ? 40 : 500))
  }
  const sum = (what: 'lost' | 'repeated'): number =>
    rounds.reduce((total, round) => total + round[what], 0)
  const note = `${sum('repeated')} repeated`
  return [
    comparison(
      { what: 'deliveries drained', unit: '/s', goal: GOALS[bench.database], note },
      'ratio',
      'raw POSTs',
      rounds,
    ),
    figure(
      { what: 'CPU of 1,000 deliveries', unit: 'ms' },
      median(rounds.map(({ cpu }) => cpu)) * 1000,
    ),
    figure({ what: 'deliveries lost', unit: '', goal: { atMost: 0 } }, sum('lost')),
  ]
}

/** Emits events, each for 100 webhooks, and measures their deliveries. */
async function drainOnce(bench: Bench, events: number): Promise<Drained> {
  await using sink = startChild<Sink>('sink.ts')
  await using raw = startChild<RawPosts>('raw-posts.ts')
  const environment = await bench.newEnvironment()
  const origins = await sink.call('listen')
  const backlog = origins.length * events
  await emitEvents(environment, await subscribe(environment, origins), events)
  await raw.call('load', environment)

  // The first requests open connections and warm up.
  await raw.call('send')
  const before = await raw.call('send')
  await sink.call('reset')
  await using engine = startChild<EngineProcess>('engine.ts')
  await engine.call('start', environment)
  const first = await engine.call('delivered', backlog * WARM_UP, MAX_DRAIN_MS)
  const all = await engine.call('delivered', backlog, MAX_DRAIN_MS)
  await engine[Symbol.asyncDispose]()
  const { arrived, repeated } = await sink.call('summary')
  const after = await raw.call('send')
  const count = all.count - first.count
  return {
    muster: (count / (all.at - first.at)) * 1000,
    reference: (before + after) / 2,
    lost: backlog - arrived,
    repeated,
    cpu: (all.cpuMicros - first.cpuMicros) / count / 1000,
  }
}

interface Worker {
  /** How many deliveries the process has made, and the time on the shared clock. */
  call(name: 'progress'): Promise<{ count: number; at: number }>
}

/** Waits until the processes have made all deliveries of the backlog. Returns deliveries per
 *  second. */
export async function measureDrain(workers: Worker[], backlog: number): Promise<number> {
  const reach = (wanted: number) =>
    until(
      `${wanted} deliveries`,
      async () => {
        const progress = await Promise.all(workers.map((worker) => worker.call('progress')))
        const count = progress.reduce((sum, worker) => sum + worker.count, 0)
        return count >= wanted && { count, at: Math.max(...progress.map(({ at }) => at)) }
      },
      MAX_DRAIN_MS,
    )
  const first = await reach(backlog * WARM_UP)
  const all = await reach(backlog)
  return ((all.count - first.count) / (all.at - first.at)) * 1000
}
