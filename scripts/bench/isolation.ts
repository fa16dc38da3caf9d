/** What one webhook that never answers costs the 19 others, which have as much to get. */
import { setTimeout as delay } from 'node:timers/promises'
import { startChild } from './child.ts'
import { WARM_UP, WITHIN_MS } from './drain.ts'
import type { EngineProcess } from './engine.ts'
import { comparison, figure, percentile, type Result } from './result.ts'
import { type Bench, emitEvents, subscribe } from './set-up.ts'
import type { Sink } from './sink.ts'

const WEBHOOKS = 20
const LIGHT_SECONDS = 10
const EVENTS_PER_SECOND = 5

export async function isolation(bench: Bench): Promise<Result[]> {
  const events = bench.quick ? 200 : 5_000
  const rounds: { muster: number; reference: number }[] = []
  const latencies: number[] = []
  for (let round = 1; round <= (bench.quick ? 1 : 2); round++) {
    bench.progress(`round ${round}: all answer`)
    const reference = (await drainHealthy(bench, events, false)).perSecond
    bench.progress(`round ${round}: one hangs`)
    const { perSecond, lateMs } = await drainHealthy(bench, events, true)
    rounds.push({ muster: perSecond, reference })
    latencies.push(...lateMs)
  }
  return [
    comparison({ what: '1 of 20 hangs: the others drained', unit: '/s', goal: { atLeast: 0.75 } }, 'ratio', 'none hangs', rounds),
    figure({ what: '1 of 20 hangs: event to webhook, p99', unit: 'ms', goal: { atMost: 50 } }, percentile(latencies, 0.99)),
  ]
}

/** How fast those that answer get their backlog, and then how late new events are, while the backlog of the one that hangs still waits. */
async function drainHealthy(bench: Bench, events: number, hangs: boolean): Promise<{ perSecond: number; lateMs: number[] }> {
  await using sink = startChild<Sink>('sink.ts')
  await using engine = startChild<EngineProcess>('engine.ts')
  const environment = await bench.newEnvironment()
  const origins = (await sink.call('listen')).slice(0, WEBHOOKS)
  if (hangs) await sink.call('hang', 0)
  const accounts = await subscribe(environment, origins)
  await emitEvents(environment, accounts, events)
  const healthy = (WEBHOOKS - (hangs ? 1 : 0)) * events
  await engine.call('start', environment)
  const first = await engine.call('delivered', healthy * WARM_UP, WITHIN_MS)
  const all = await engine.call('delivered', healthy, WITHIN_MS)
  const perSecond = ((all.count - first.count) / (all.at - first.at)) * 1000
  if (!hangs) return { perSecond, lateMs: [] }

  await sink.call('reset')
  const seconds = bench.quick ? 2 : LIGHT_SECONDS
  await engine.call('emit', accounts, seconds * EVENTS_PER_SECOND, 1000 / EVENTS_PER_SECOND)
  await delay(1_000)
  const emitted = await engine.call('emitted')
  const arrivals = await sink.call('arrivalTimes')
  return { perSecond, lateMs: [...emitted].flatMap(([id, at]) => (arrivals.get(id) ?? []).map((arrival) => arrival - at)) }
}
