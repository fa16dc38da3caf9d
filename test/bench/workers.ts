/** Two worker processes on one PostgreSQL, compared with one. */
import { startChild } from './child.ts'
import { measureDrain } from './drain.ts'
import type { EngineProcess } from './engine.ts'
import { comparison, figure, type Result } from './result.ts'
import { type Bench, emitEvents, subscribe } from './set-up.ts'
import type { Sink } from './sink.ts'

export async function workers(bench: Bench): Promise<Result[]> {
  if (bench.database === 'sqlite') return []
  const events = bench.quick ? 40 : 250
  bench.progress('one worker')
  const one = await drainWith(bench, events, 1)
  bench.progress('two workers')
  const two = await drainWith(bench, events, 2)
  return [
    comparison({ what: 'two workers drained', unit: '/s' }, 'ratio', 'one worker', [
      { muster: two.perSecond, reference: one.perSecond },
    ]),
    figure(
      { what: 'two workers: deliveries repeated', unit: '', goal: { atMost: 0 } },
      two.repeated,
    ),
  ]
}

async function drainWith(
  bench: Bench,
  events: number,
  count: number,
): Promise<{ perSecond: number; repeated: number }> {
  await using sink = startChild<Sink>('sink.ts')
  await using processes = new AsyncDisposableStack()
  const environment = await bench.newEnvironment()
  const origins = await sink.call('listen')
  const accounts = await subscribe(environment, origins)
  const engines = Array.from({ length: count }, () =>
    processes.use(startChild<EngineProcess>('engine.ts')),
  )
  for (const engine of engines) await engine.call('start', environment)
  await emitEvents(environment, accounts, events)
  const perSecond = await measureDrain(engines, origins.length * events)
  const { repeated } = await sink.call('summary')
  return { perSecond, repeated }
}
