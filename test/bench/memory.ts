/** Whether memory grows with the number of deliveries. */
import { startChild } from './child.ts'
import { MAX_DRAIN_MS } from './drain.ts'
import type { EngineProcess } from './engine.ts'
import { comparison, figure, type Result } from './result.ts'
import { type Bench, emitEvents, subscribe } from './set-up.ts'
import type { Sink } from './sink.ts'

const WEBHOOKS = 100
const DELIVERIES = 200_000
const ROUNDS = 20
const MIB = 1024 * 1024

/** Memory after all deliveries, compared with memory after the first tenth. */
export async function memory(bench: Bench): Promise<Result[]> {
  await using sink = startChild<Sink>('sink.ts')
  await using engine = startChild<EngineProcess>('engine.ts')
  const environment = await bench.newEnvironment()
  const accounts = await subscribe(environment, await sink.call('listen'))
  await engine.call('start', environment)
  const total = bench.quick ? DELIVERIES / 20 : DELIVERIES
  let most = 0
  let reference = 0
  for (let round = 1; round <= ROUNDS; round++) {
    await emitEvents(environment, accounts, total / ROUNDS / WEBHOOKS)
    const { count, rssBytes } = await engine.call(
      'delivered',
      (total / ROUNDS) * round,
      MAX_DRAIN_MS,
    )
    await sink.call('reset')
    if (round === ROUNDS / 10) reference = await engine.call('retainedBytes')
    most = Math.max(most, rssBytes)
    bench.progress(`${count} deliveries: ${Math.round(rssBytes / MIB)} MiB`)
  }
  const retained = await engine.call('retainedBytes')
  const what = `MiB of memory after ${total.toLocaleString('en')} deliveries`
  return [
    comparison({ what, unit: '', goal: { atMost: 1.2 } }, 'ratio', 'after a tenth', [
      { muster: retained / MIB, reference: reference / MIB },
    ]),
    // Under load the heap also contains the garbage since the last collection.
    figure({ what: 'most MiB of memory meanwhile', unit: '' }, most / MIB),
  ]
}
