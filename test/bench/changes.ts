/** The path of a change: a create with an Idempotency-Key and one webhook, from the request to the
 *  signed POST. Compared with bare Koa and pg, and with an earlier checkout. Nothing is warmed up:
 *  the first round is the first work of new processes on a new database. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Child, startChild } from './child.ts'
import { type Contender, type ContenderName, startContenders } from './contenders.ts'
import type { Counters } from './counters.ts'
import { createParticipants, waitForArrivals } from './latency.ts'
import { publish, publishHeaders } from './publish.ts'
import {
  comparison,
  figure,
  type Goal,
  median,
  percentile,
  type Result,
  type Round,
} from './result.ts'
import type { Bench, DatabaseKind } from './set-up.ts'
import type { Sink } from './sink.ts'

const CLIENTS = 32
const ROUNDS = 3
const ARRIVAL_MS = 120_000
const POLL_MS = 20
const PACED_SECONDS = 10
/** Each contender writes its last results and its request log within this time. */
const STORE_MS = 2_000
/** An idle connection of PostgreSQL reports its last transactions after 10 seconds. */
const REPORT_MS = 11_000

type Figure = keyof typeof FIGURES
type Figures = Partial<Record<Figure, number>>
/** The figures of each round, by the name of the contender. */
type FiguresByName = Map<string, Figures[]>

const FIGURES = {
  accepted: { what: 'changes accepted, 32 clients', unit: '/s' },
  delivered: { what: 'changes accepted and delivered, 32 clients', unit: '/s' },
  cpu: { what: 'CPU of 1,000 changes', unit: 'ms' },
  service: { what: 'CPU of 1,000 changes, service', unit: 'ms' },
  postgres: { what: 'CPU of 1,000 changes, PostgreSQL', unit: 'ms' },
  statements: { what: 'statements of a change', unit: '' },
  commits: { what: 'commits of a change', unit: '' },
  wal: { what: 'WAL of a change', unit: 'kB' },
  writes: { what: 'socket writes of a change', unit: '' },
  pacedCpu: { what: 'CPU of a second at 25 changes/s', unit: 'ms' },
  p50: { what: 'publish to receipt at 25/s, p50', unit: 'ms' },
  p99: { what: 'publish to receipt at 25/s, p99', unit: 'ms' },
} satisfies Record<string, Pick<Result, 'what' | 'unit'>>

const POSTGRES_FIGURES: readonly Figure[] = ['service', 'postgres', 'statements', 'commits', 'wal']

/** Goals of Muster's own figures. */
const GOALS: Partial<Record<Figure, Goal>> = {
  statements: { atMost: 10 },
  commits: { atMost: 1.3 },
  writes: { atMost: 6 },
  pacedCpu: { atMost: 120 },
}

/** The contender of the goals below. */
const TARGET: ContenderName = 'bare Koa, four inserts'

/** How a figure compares with that of `TARGET`. */
const TARGET_GOALS: Partial<Record<Figure, ComparedGoal>> = {
  delivered: { by: 'ratio', goal: { atLeast: 1 } },
  cpu: { by: 'difference', goal: { atMost: 350 } },
  p50: { by: 'difference', goal: { atMost: 1.5 } },
}
const EMBEDDED_TARGET_GOALS: typeof TARGET_GOALS = {
  delivered: { by: 'ratio', goal: { atLeast: 0.8 } },
}

interface ComparedGoal {
  by: 'ratio' | 'difference'
  goal?: Goal
}

export async function changes(bench: Bench): Promise<Result[]> {
  await using sink = startChild<Sink>('sink.ts')
  await using contenders = await startContenders(bench, await sink.call('listen'))
  const measured: FiguresByName = new Map(contenders.list.map(({ name }) => [name, []]))
  for (let round = 1; round <= (bench.quick ? 1 : ROUNDS); round++)
    for (const contender of contenders.list) {
      bench.progress(`${contender.name}, round ${round}`)
      measured.get(contender.name)?.push(await measureRound(bench, sink, contender))
    }
  for (const contender of contenders.list) {
    bench.progress(`${contender.name}, counting`)
    measured.get(contender.name)?.push(await measureCounts(bench, sink, contender))
  }
  const results = [...listResults(bench.database, contenders.list, measured)]
  for (const clients of [16, 64]) {
    bench.progress(`with and without a webhook, ${clients} clients`)
    results.push(await measureWebhook(bench, sink, contenders.list[0] as Contender, clients))
  }
  return results
}

async function measureRound(
  { quick }: Bench,
  sink: Child<Sink>,
  contender: Contender,
): Promise<Figures> {
  const changes = quick ? 300 : 5_000
  const before = await contender.counters()
  const { acceptedMs, deliveredMs } = await deliverAll(sink, contender, changes)
  await delay(STORE_MS)
  const perChange = differences(before, await contender.counters(), changes)
  const paced = await measurePaced(sink, contender, quick ? 1 : PACED_SECONDS)
  return {
    accepted: (changes / acceptedMs) * 1000,
    delivered: (changes / deliveredMs) * 1000,
    cpu: (perChange('serviceMs') + perChange('postgresMs')) * 1000,
    service: perChange('serviceMs') * 1000,
    postgres: perChange('postgresMs') * 1000,
    ...paced,
  }
}

/** Counts the figures that vary little from round to round. */
async function measureCounts(
  { quick }: Bench,
  sink: Child<Sink>,
  contender: Contender,
): Promise<Figures> {
  const changes = quick ? 300 : 3_000
  const before = await contender.counters()
  await deliverAll(sink, contender, changes)
  await delay(REPORT_MS)
  const perChange = differences(before, await contender.counters(), changes)
  const traced = quick ? 100 : 1_000
  const writes = await contender.countSocketWrites(() => deliverAll(sink, contender, traced))
  return {
    statements: perChange('statements'),
    commits: perChange('commits'),
    wal: perChange('walBytes') / 1000,
    writes: writes && writes / traced,
  }
}

/** Returns a function that reads how much a counter grew per change, or per second. */
function differences(before: Counters, after: Counters, divisor: number) {
  return (name: keyof Counters): number => (after[name] - before[name]) / divisor
}

/** Publishes by 32 clients until all deliveries have arrived. */
async function deliverAll(
  sink: Child<Sink>,
  { url, token }: Contender,
  count: number,
): Promise<{ acceptedMs: number; deliveredMs: number }> {
  await sink.call('reset')
  const started = performance.now()
  await publish({ url, token, count, clients: CLIENTS })
  const acceptedMs = performance.now() - started
  for (;;) {
    const { arrived } = await sink.call('summary')
    const deliveredMs = performance.now() - started
    if (arrived >= count) return { acceptedMs, deliveredMs }
    if (deliveredMs > ARRIVAL_MS) throw new Error(`${count - arrived} deliveries did not arrive`)
    await delay(POLL_MS)
  }
}

/** Measures the time from each request to the arrival of its delivery, and the CPU time, at 25
 *  changes a second. */
async function measurePaced(
  sink: Child<Sink>,
  { url, token, counters }: Contender,
  seconds: number,
): Promise<Figures> {
  await sink.call('reset')
  const before = await counters()
  const started = performance.now()
  const sent = await createParticipants(url, seconds, () => publishHeaders(token))
  const elapsed = (performance.now() - started) / 1000
  const perSecond = differences(before, await counters(), elapsed)
  const arrivals = await waitForArrivals(sink, sent)
  const latenciesMs = sent.map(({ id, sentAt }) => (arrivals.get(id) ?? Number.NaN) - sentAt)
  return {
    pacedCpu: perSecond('serviceMs') + perSecond('postgresMs'),
    p50: percentile(latenciesMs, 0.5),
    p99: percentile(latenciesMs, 0.99),
  }
}

/** How many participants are created per second in an account with a webhook, compared with one
 *  without. */
async function measureWebhook(
  { quick }: Bench,
  sink: Child<Sink>,
  { url, token, tokenWithoutWebhook }: Contender,
  clients: number,
): Promise<Result> {
  const count = quick ? 200 : 2_000
  const rounds: Round[] = []
  for (let round = 1; round <= (quick ? 1 : ROUNDS); round++) {
    const reference = await publish({ url, token: tokenWithoutWebhook, count, clients })
    await sink.call('reset')
    const muster = await publish({ url, token, count, clients })
    while ((await sink.call('summary')).arrived < count) await delay(POLL_MS)
    rounds.push({ muster, reference })
  }
  return comparison(
    { what: `creates with a webhook, ${clients} clients`, unit: '/s', goal: { atLeast: 0.9 } },
    'ratio',
    'without',
    rounds,
  )
}

/** Each figure of Muster, followed by its comparison with each other contender. */
function* listResults(
  database: DatabaseKind,
  [muster, ...others]: Contender[],
  measured: FiguresByName,
): Generator<Result> {
  const valuesOf = (contender: Contender | undefined, name: Figure): number[] =>
    (measured.get(contender?.name ?? '') ?? []).flatMap((figures) => figures[name] ?? [])
  for (const name of Object.keys(FIGURES) as Figure[]) {
    const values = valuesOf(muster, name)
    if (values.length === 0 || (database === 'sqlite' && POSTGRES_FIGURES.includes(name))) continue
    const goal = database === 'sqlite' ? undefined : GOALS[name]
    yield figure({ ...FIGURES[name], goal }, median(values))
    for (const other of others) {
      const references = valuesOf(other, name)
      const rounds = values.map((muster, round) => ({
        muster,
        reference: references[round] ?? Number.NaN,
      }))
      const goals = database === 'sqlite' ? EMBEDDED_TARGET_GOALS : TARGET_GOALS
      const { by, goal }: ComparedGoal = (other.name === TARGET && goals[name]) || { by: 'ratio' }
      yield comparison({ ...FIGURES[name], goal }, by, other.name, rounds)
    }
  }
}
