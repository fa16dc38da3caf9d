/** The effect of one endpoint that never responds on 19 webhooks with equal backlogs. */
import { setTimeout as delay } from 'node:timers/promises'
import { startChild } from './child.ts'
import { MAX_DRAIN_MS, WARM_UP } from './drain.ts'
import type { EngineProcess } from './engine.ts'
import { comparison, figure, type Goal, percentile, type Result, type Round } from './result.ts'
import { type Bench, emitEvents, subscribe } from './set-up.ts'
import type { Sink } from './sink.ts'

const WEBHOOKS = 20
const LIGHT_SECONDS = 30
const EVENTS_PER_SECOND = 5

export async function isolation(bench: Bench): Promise<Result[]> {
  const events = bench.quick ? 200 : 5_000
  const drained: Round[] = []
  const late: Record<keyof Round, number[]> = { muster: [], reference: [] }
  for (let round = 1; round <= (bench.quick ? 1 : 2); round++) {
    bench.progress(`round ${round}: all respond`)
    const reference = await measureResponding(bench, { events, hanging: 0 })
    bench.progress(`round ${round}: one hangs`)
    const muster = await measureResponding(bench, { events, hanging: 1 })
    drained.push({ muster: muster.perSecond, reference: reference.perSecond })
    late.muster.push(...muster.lateMs)
    late.reference.push(...reference.lateMs)
  }
  const lateness = (share: number, goal?: Goal): Result => {
    const described = {
      what: `1 of 20 hangs: event to webhook, p${share * 100}`,
      unit: 'ms' as const,
      goal,
    }
    // The goal is for Muster's own figure. Delays of the machine are in both figures.
    return {
      ...figure(described, percentile(late.muster, share)),
      reference: { name: 'none hangs', value: percentile(late.reference, share) },
    }
  }
  return [
    comparison(
      { what: '1 of 20 hangs: the others drained', unit: '/s', goal: { atLeast: 0.8 } },
      'ratio',
      'none hangs',
      drained,
    ),
    lateness(0.5),
    lateness(0.99, { atMost: 50 }),
  ]
}

/** How fast the backlogs of the responding endpoints are drained, and how late new events arrive
 *  there while the backlog of a hanging endpoint remains. */
async function measureResponding(
  bench: Bench,
  { events, hanging }: { events: number; hanging: 0 | 1 },
): Promise<{ perSecond: number; lateMs: number[] }> {
  await using sink = startChild<Sink>('sink.ts')
  await using engine = startChild<EngineProcess>('engine.ts')
  const environment = await bench.newEnvironment()
  const origins = (await sink.call('listen')).slice(0, WEBHOOKS)
  if (hanging === 1) await sink.call('hang', 0)
  const accounts = await subscribe(environment, origins)
  await emitEvents(environment, accounts, events)
  const backlog = (WEBHOOKS - hanging) * events
  await engine.call('start', environment)
  const first = await engine.call('delivered', backlog * WARM_UP, MAX_DRAIN_MS)
  const all = await engine.call('delivered', backlog, MAX_DRAIN_MS)
  const perSecond = ((all.count - first.count) / (all.at - first.at)) * 1000

  await sink.call('reset')
  const seconds = bench.quick ? 2 : LIGHT_SECONDS
  await engine.call('emit', accounts, seconds * EVENTS_PER_SECOND, 1000 / EVENTS_PER_SECOND)
  await delay(1_000)
  const emitted = await engine.call('emitted')
  const arrivals = await sink.call('arrivalTimes')
  return {
    perSecond,
    lateMs: [...emitted].flatMap(([id, at]) =>
      (arrivals.get(id) ?? []).map((arrival) => arrival - at),
    ),
  }
}
