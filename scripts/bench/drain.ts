/** How fast a backlog of deliveries is sent and settled, beside raw POSTs of the same bytes to the same receivers. */
import { randomUUID } from 'node:crypto'
import { MAX_WEBHOOKS_PER_ACCOUNT } from '../../records/webhooks.ts'
import { emit } from '../../webhooks/emit.ts'
import { startChild } from './child.ts'
import type { EngineProcess } from './engine.ts'
import type { RawPosts } from './raw-posts.ts'
import { comparison, figure, type Goal, type Result, type Round } from './result.ts'
import { addWebhooks, type Bench, type DatabaseKind, type Environment, newAccount, withRecords } from './set-up.ts'
import type { Sink } from './sink.ts'

const GOALS: Record<DatabaseKind, Goal> = { sqlite: { atLeast: 0.12 }, postgres: { atLeast: 0.2 } }
const WITHIN_MS = 300_000
/** Of the backlog, to warm up: the raw POSTs have a whole round for it. */
const WARM_UP = 0.25

interface Drained extends Round {
  lost: number
  doubled: number
}

export async function drain(bench: Bench): Promise<Result[]> {
  const rounds: Drained[] = []
  for (let round = 1; round <= (bench.quick ? 1 : 3); round++) {
    bench.progress(`round ${round}`)
    rounds.push(await drainOnce(bench, bench.quick ? 40 : 250))
  }
  const sum = (what: 'lost' | 'doubled'): number => rounds.reduce((total, round) => total + round[what], 0)
  const note = `${sum('doubled')} doubled`
  return [
    comparison({ what: 'deliveries drained', unit: '/s', goal: GOALS[bench.database], note }, 'ratio', 'raw POSTs', rounds),
    figure({ what: 'deliveries lost', unit: '', goal: { atMost: 0 } }, sum('lost')),
  ]
}

/** Of so many events, each for 100 webhooks. */
async function drainOnce(bench: Bench, events: number): Promise<Drained> {
  await using sink = startChild<Sink>('sink.ts')
  await using raw = startChild<RawPosts>('raw-posts.ts')
  const environment = await bench.newEnvironment()
  const origins = await sink.call('listen')
  const backlog = origins.length * events
  await addBacklog(environment, origins, events)
  await raw.call('load', environment)

  // The first ones connect and warm up.
  await raw.call('send')
  const before = await raw.call('send')
  await sink.call('reset')
  const perSecond = await runEngine(environment, backlog)
  const { arrived, doubled } = await sink.call('summary')
  const after = await raw.call('send')
  return { muster: perSecond, reference: (before + after) / 2, lost: backlog - arrived, doubled }
}

/** Deliveries per second, stored results included, after the first ones. */
async function runEngine(environment: Environment, backlog: number): Promise<number> {
  await using engine = startChild<EngineProcess>('engine.ts')
  await engine.call('start', environment)
  const first = await engine.call('delivered', backlog * WARM_UP, WITHIN_MS)
  const all = await engine.call('delivered', backlog, WITHIN_MS)
  return ((all.count - first.count) / (all.at - first.at)) * 1000
}

/** As many accounts as the webhooks need, and the same events in each. */
async function addBacklog(environment: Environment, origins: string[], count: number): Promise<void> {
  await withRecords(environment, async (trx, config) => {
    for (let from = 0; from < origins.length; from += MAX_WEBHOOKS_PER_ACCOUNT) {
      const { scope } = await newAccount(trx)
      const urls = origins.slice(from, from + MAX_WEBHOOKS_PER_ACCOUNT).map((origin) => `${origin}/webhooks`)
      await addWebhooks(scope, urls, config)
      for (let event = 0; event < count; event++) await emit(scope, 'participant.created', randomUUID(), [], new Date())
    }
  })
}
