/** The delivery engine compared with graphile-worker on the same PostgreSQL and the same work. */
import { startChild } from './child.ts'
import { measureDrain } from './drain.ts'
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
  return await measureDrain([worker], origins.length * events)
}
