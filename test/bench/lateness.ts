/** How late scheduled attempts start. */
import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase } from '../../records/database/open.ts'
import { readConfig } from '../../server/config.ts'
import { startChild } from './child.ts'
import { MAX_DRAIN_MS } from './drain.ts'
import type { EngineProcess } from './engine.ts'
import { figure, percentile, type Result } from './result.ts'
import { type Bench, type Environment, subscribe } from './set-up.ts'
import type { Sink } from './sink.ts'

const DELAY_MS = 5_000
const ATTEMPTS = 200
const EVERY_MS = 40

/** The first attempts fail. The second attempts are due five seconds later. */
export async function lateness(bench: Bench): Promise<Result[]> {
  await using sink = startChild<Sink>('sink.ts')
  await using engine = startChild<EngineProcess>('engine.ts')
  const environment = {
    ...(await bench.newEnvironment()),
    WEBHOOK_RETRY_DELAYS: Array(9)
      .fill(DELAY_MS / 1000)
      .join(','),
  }
  const origins = await sink.call('listen')
  await sink.call('failFirst')
  const accounts = await subscribe(environment, origins.slice(0, 1))
  await engine.call('start', environment)
  bench.progress('scheduling attempts')
  const count = bench.quick ? 20 : ATTEMPTS
  await engine.call('emit', accounts, count, EVERY_MS)
  await engine.call('delivered', count, MAX_DRAIN_MS)
  await delay(100)
  const late = await listDelays(environment)
  return [
    figure({ what: 'scheduled attempts late, p50', unit: 'ms' }, percentile(late, 0.5)),
    figure(
      { what: 'scheduled attempts late, p99', unit: 'ms', goal: { atMost: 50 } },
      percentile(late, 0.99),
    ),
  ]
}

/** How many milliseconds after its scheduled time each second attempt started. */
async function listDelays(environment: Environment): Promise<number[]> {
  const db = openDatabase(readConfig(environment).database)
  try {
    const rows: { first: number; took: number; second: number }[] = await db
      .read('attempts as one')
      .join('attempts as two', 'two.delivery_id', 'one.delivery_id')
      .where({ 'one.number': 1, 'two.number': 2 })
      .select({ first: 'one.started_at', took: 'one.duration_ms', second: 'two.started_at' })
    return rows.map(({ first, took, second }) => second - (first + took + DELAY_MS))
  } finally {
    await db.close()
  }
}
