/** The delivery engine compared with graphile-worker on the same PostgreSQL and the same work. */
import { setTimeout as delay } from 'node:timers/promises'
import { startChild } from './child.ts'
import { WARM_UP, WITHIN_MS } from './drain.ts'
import type { EngineProcess } from './engine.ts'
import type { GraphileWorker } from './graphile.ts'
import { comparison, type Result } from './result.ts'
import { type Bench, emitEvents, subscribe } from './set-up.ts'
import type { Sink } from './sink.ts'

export async function peer(bench: Bench): Promise<Result[]> {
  if (bench.database === 'sqlite') return []
  const events = bench.quick ? 20 : 100
  bench.progress('Muster')
  const muster = await drainWith(bench, events, 'engine.ts')
  bench.progress('graphile-worker')
  const reference = await drainWith(bench, events, 'graphile.ts')
  return [
    comparison({ what: 'the same backlog drained', unit: '/s' }, 'ratio', 'graphile-worker', [
      { muster, reference },
    ]),
  ]
}

/** Deliveries per second. */
async function drainWith(bench: Bench, events: number, file: string): Promise<number> {
  await using sink = startChild<Sink>('sink.ts')
  await using worker = startChild<Pick<EngineProcess & GraphileWorker, 'start' | 'progress'>>(file)
  const environment = await bench.newEnvironment()
  const origins = await sink.call('listen')
  await emitEvents(environment, await subscribe(environment, origins), events)
  await worker.call('start', environment)
  const reach = async (wanted: number): Promise<{ count: number; at: number }> => {
    for (const deadline = Date.now() + WITHIN_MS; ; ) {
      const progress = await worker.call('progress')
      if (progress.count >= wanted) return progress
      if (Date.now() > deadline)
        throw new Error(`${file} delivered only ${progress.count} of ${wanted} in time`)
      await delay(10)
    }
  }
  const first = await reach(origins.length * events * WARM_UP)
  const all = await reach(origins.length * events)
  return ((all.count - first.count) / (all.at - first.at)) * 1000
}
