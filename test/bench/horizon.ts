/** The effect of a million attempts that are scheduled for later on attempts that are due now. */
import { openDatabase } from '../../records/database/open.ts'
import {
  findNextQueuedDueAt,
  listOverdueQueued,
  listUnqueued,
} from '../../records/scheduled-attempts.ts'
import { readConfig } from '../../server/config.ts'
import { newLogger } from '../../server/log.ts'
import { startQueue } from '../../webhooks/queue/queue.ts'
import { figure, percentile, type Result } from './result.ts'
import { type Bench, emitEvents, subscribe, withRecords } from './set-up.ts'

const SCHEDULED = 1_000_000
const REPETITIONS = 200
const HOUR_MS = 3_600_000

export async function horizon(bench: Bench): Promise<Result[]> {
  const environment = await bench.newEnvironment()
  await emitEvents(environment, await subscribe(environment, ['http://127.0.0.1:9']), 1)
  const scheduled = bench.quick ? SCHEDULED / 20 : SCHEDULED
  bench.progress(`scheduling ${scheduled.toLocaleString('en')} attempts`)
  await withRecords(environment, async ({ dialect, sql }) => {
    // Copies of one delivery, scheduled from one hour ahead.
    const numbers =
      dialect === 'postgres'
        ? `generate_series(1, ${scheduled}) as number`
        : `(with recursive counted(number) as (select 1 union all select number + 1 from counted where number < ${scheduled}) select number from counted)`
    const id = dialect === 'postgres' ? 'gen_random_uuid()' : `lower(hex(randomblob(16)))`
    await sql.raw(
      `insert into deliveries (id, account_id, webhook_id, event_id, event_type, body, state, attempts, next_attempt_at, next_trigger, created_at, updated_at)
       select ${id}, account_id, webhook_id, event_id, event_type, body, 'retrying', 1, created_at + ${HOUR_MS} + number, 'schedule', created_at, updated_at
       from deliveries, ${numbers}`,
    )
    await sql('deliveries')
      .where({ attempts: 0 })
      .update({ state: 'delivered', next_attempt_at: null })
  })

  const config = readConfig(environment)
  const db = openDatabase(config.database)
  const databaseUrl = 'databaseUrl' in config.database ? config.database.databaseUrl : undefined
  const queue = await startQueue({ databaseUrl, attemptTimeoutMs: 15_000, log: newLogger('warn') })
  try {
    bench.progress('leases and sweeps')
    const lease = await measureMs(() => queue.attempts.lease(512, { limit: 16, skip: [] }, []))
    const sweep = await measureMs(async () => {
      const now = new Date()
      await listUnqueued(db, new Date(now.getTime() + HOUR_MS / 12), [], 1_000)
      await findNextQueuedDueAt(db, now)
      await listOverdueQueued(db, now, now, 500)
    })
    const what = `with ${scheduled.toLocaleString('en')} scheduled`
    return [
      figure(
        { what: `an empty lease ${what}, p50`, unit: 'ms', goal: { atMost: 1 } },
        percentile(lease, 0.5),
      ),
      figure({ what: `a sweep ${what}, p50`, unit: 'ms' }, percentile(sweep, 0.5)),
    ]
  } finally {
    await queue.stop(1_000)
    await db.close()
  }
}

/** The milliseconds of each repetition. */
async function measureMs(work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  for (let repetition = 0; repetition < REPETITIONS; repetition++) {
    const started = performance.now()
    await work()
    times.push(performance.now() - started)
  }
  return times
}
