/** Accounts whose endpoints, names or backlogs use as much of the delivery engine as they can. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { startNameServer } from '../dns.ts'
import { type Child, sharedNowMs, startChild } from './child.ts'
import type { EngineProcess } from './engine.ts'
import { comparison, figure, median, percentile, type Result, type Round } from './result.ts'
import { type Bench, type Environment, subscribe, withRecords } from './set-up.ts'
import type { Sink } from './sink.ts'

const WEBHOOKS = 50
const EVENT_MS = 100
/** The most that an attack may add to the p99 of another account. */
const MAX_ADDED_MS = 100
const ARRIVAL_MS = 60_000
const POLL_MS = 50
const SETTLE_MS = 1_000
/** The index of the victim's origin. */
const VICTIM = 1

interface Engines {
  sink: Child<Sink>
  engine: Child<EngineProcess>
  /** The ID of the victim's account, in an array. */
  victim: string[]
}

/** One round: the p99 of the victim from an event to its POST, alone and then during the attack. */
async function measureRound(
  bench: Bench,
  engines: Engines,
  attack: () => Promise<void>,
): Promise<Round> {
  const seconds = bench.quick ? { alone: 1, attacked: 3 } : { alone: 30, attacked: 40 }
  const reference = percentile(await measureLatencies(engines, seconds.alone), 0.99)
  await attack()
  const muster = percentile(await measureLatencies(engines, seconds.attacked), 0.99)
  await engines.engine.call('endBackground')
  return { muster, reference }
}

/** Emits events of the victim. Returns the milliseconds from each event to its POST. */
async function measureLatencies(engines: Engines, seconds: number): Promise<number[]> {
  const count = (seconds * 1000) / EVENT_MS
  await engines.engine.call('emit', engines.victim, count, EVENT_MS)
  return waitForArrivals(engines)
}

/** Waits until all emitted events have arrived. Returns the milliseconds that each took. An event
 *  that does not arrive in time has taken until now. */
async function waitForArrivals({ sink, engine }: Engines): Promise<number[]> {
  const emitted = await engine.call('emitted')
  const deadline = sharedNowMs() + ARRIVAL_MS
  for (;;) {
    const arrivals = await sink.call('arrivalTimes')
    const isComplete = [...emitted.keys()].every((id) => arrivals.has(id))
    const now = sharedNowMs()
    if (isComplete || now > deadline)
      return [...emitted].map(([id, at]) => (arrivals.get(id)?.[0] ?? now) - at)
    await delay(POLL_MS)
  }
}

/** 50 webhooks of one account respond after 14 s, at 57 changes a minute. */
export async function slowEndpoints(bench: Bench): Promise<Result[]> {
  const rounds: Round[] = []
  for (let round = 1; round <= (bench.quick ? 1 : 2); round++) {
    await using sink = startChild<Sink>('sink.ts')
    await using engine = startChild<EngineProcess>('engine.ts')
    const environment = await bench.newEnvironment()
    const origins = await sink.call('listen')
    const attacker = await subscribe(environment, Array(WEBHOOKS).fill(origins[0]))
    const victim = await subscribe(environment, origins.slice(VICTIM, VICTIM + 1))
    await engine.call('start', environment)
    const attack = async (): Promise<void> => {
      // A host that has never responded would get fewer slots.
      await engine.call('emit', attacker, 1, SETTLE_MS)
      await sink.call('respondAfter', 0, 14_000)
      await engine.call('emitInBackground', attacker, 60_000 / 57)
    }
    rounds.push(await measureRound(bench, { sink, engine, victim }, attack))
  }
  return [bounded('50 endpoints respond after 14 s: event to webhook, p99', rounds)]
}

/** 100 host names in two accounts never get a response from a name server. */
export async function hangingNames(bench: Bench): Promise<Result[]> {
  const rounds: Round[] = []
  for (let round = 1; round <= (bench.quick ? 1 : 2); round++) {
    await using sink = startChild<Sink>('sink.ts')
    await using engine = startChild<EngineProcess>('engine.ts')
    await using names = await startNameServer((name) =>
      name.startsWith('hangs') ? 'silence' : ['127.0.0.2'],
    )
    const environment = await bench.newEnvironment()
    const [origin = ''] = await sink.call('listen')
    // So that each attempt looks up the name of the victim.
    await sink.call('close', VICTIM)
    const { port } = new URL(origin)
    const hanging = Array.from({ length: 100 }, (_, index) => `http://hangs-${index}.test:${port}`)
    const attackers = await subscribe(environment, hanging)
    const victim = await subscribe(environment, [`http://victim.test:${port}`])
    await engine.call('start', environment, [names.address])
    const attack = () => engine.call('emitInBackground', attackers, 1_000)
    rounds.push(await measureRound(bench, { sink, engine, victim }, attack))
  }
  return [bounded('100 host names hang: event to webhook, p99', rounds)]
}

function bounded(what: string, rounds: Round[]): Result {
  const goal = { atMost: MAX_ADDED_MS }
  return comparison({ what, unit: 'ms', goal }, 'difference', 'alone', rounds)
}

const FULL_ACCOUNTS = 10
const EVENTS_TOGETHER = 10
const ROUNDS = 10

/** 10 accounts with 100,000 due attempts each, and one with 10. */
export async function fullQueues(bench: Bench): Promise<Result[]> {
  await using sink = startChild<Sink>('sink.ts')
  await using engine = startChild<EngineProcess>('engine.ts')
  const environment = await bench.newEnvironment()
  const origins = await sink.call('listen')
  const victim = await subscribe(environment, origins.slice(VICTIM, VICTIM + 1))
  const full: string[] = []
  for (const origin of origins.slice(VICTIM + 1, VICTIM + 1 + FULL_ACCOUNTS))
    full.push(...(await subscribe(environment, [origin])))
  await engine.call('start', environment)
  const alone = await measureTenEvents({ sink, engine, victim })
  bench.progress('inserting the backlogs')
  for (const accountId of full)
    await insertBacklog(environment, accountId, bench.quick ? 2_000 : 100_000)
  const attacked = await measureTenEvents({ sink, engine, victim })
  const described = {
    what: '10 accounts with 100,000 due attempts: 10 events of another arrive within',
    unit: 's' as const,
    goal: { atMost: 1 },
  }
  const reference = { name: 'alone', value: Math.max(...alone) }
  const note = `median ${median(attacked).toFixed(2)} s`
  return [{ ...figure({ ...described, note }, Math.max(...attacked)), reference }]
}

/** Emits ten events together, several times. Returns the seconds until the last of each ten has
 *  arrived. */
async function measureTenEvents(engines: Engines): Promise<number[]> {
  const { sink, engine, victim } = engines
  const seconds: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await engine.call('emitTogether', victim[0] ?? '', EVENTS_TOGETHER)
    seconds.push(Math.max(...(await waitForArrivals(engines))) / 1000)
    await sink.call('reset')
    await delay(500)
  }
  return seconds
}

/** Inserts due deliveries for the only webhook of the account. */
async function insertBacklog(
  environment: Environment,
  accountId: string,
  count: number,
): Promise<void> {
  await withRecords(environment, async ({ dialect, sql }) => {
    const webhook = await sql('webhooks').where({ account_id: accountId }).first('id')
    const now = Date.now()
    const prefix = randomUUID().slice(0, 8)
    const [numbers, id] =
      dialect === 'postgres'
        ? [
            `generate_series(1, ${count}) as numbers(n)`,
            `('${prefix}-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`,
          ]
        : [
            `(with recursive numbers(n) as (
               select 1 union all select n + 1 from numbers where n < ${count}) select n from numbers)`,
            `printf('${prefix}-0000-7000-8000-%012x', n)`,
          ]
    await sql.raw(
      `insert into deliveries (id, account_id, webhook_id, event_type, body, state, attempts,
         next_attempt_at, next_trigger, created_at, updated_at)
       select ${id}, ?, ?, 'participant.created', ?, 'pending', 0, ?, 'schedule', ?, ? from ${numbers}`,
      [accountId, webhook.id, Buffer.from('{"resource":{"id":"backlog"}}'), now, now, now],
    )
  })
}
