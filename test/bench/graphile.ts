/** A process that delivers the same backlog with graphile-worker: one job per delivery. */
import { Logger, type Runner, run } from 'graphile-worker'
import pg from 'pg'
import { Agent } from 'undici'
import type { Attempt } from '../../records/attempt.ts'
import { loadRequests } from '../../records/attempt-requests.ts'
import { openDatabase } from '../../records/database/open.ts'
import { readConfig } from '../../server/config.ts'
import { secretOpener } from '../../webhooks/transport/secret.ts'
import { serveCalls, sharedNowMs } from './child.ts'
import type { Environment } from './set-up.ts'
import { sendSigned } from './signed-post.ts'

/** The concurrency with the best throughput of those tested. */
const CONCURRENCY = 64
const LOCAL_QUEUE = 512
const BATCH_MS = 10

let runner: Runner
let delivered = 0

async function storeSuccess(
  pool: pg.Pool,
  { id, startedAt, status }: { id: string; startedAt: number; status: number },
): Promise<void> {
  const endedAt = Date.now()
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query(
      `insert into attempts
         (account_id, delivery_id, number, trigger, started_at, duration_ms, outcome, status)
       select account_id, id, 1, 'schedule', $2, $3, 'success', $4 from deliveries where id = $1`,
      [id, startedAt, endedAt - startedAt, status],
    )
    await client.query(
      `update deliveries
       set state = 'delivered', attempts = 1, next_attempt_at = null, next_trigger = null, updated_at = $2
       where id = $1`,
      [id, endedAt],
    )
    await client.query('commit')
  } finally {
    client.release()
  }
}

const calls = {
  /** Queues every due delivery and starts. */
  async start(environment: Environment): Promise<void> {
    const config = readConfig(environment)
    if (!('databaseUrl' in config.database)) throw new Error('graphile-worker needs PostgreSQL')
    const connectionString = config.database.databaseUrl
    const open = secretOpener(config.secretKeys)
    const db = openDatabase(config.database)
    const agent = new Agent()
    const pool = new pg.Pool({ connectionString, max: CONCURRENCY })
    pool.on('error', (error) => console.error(error))
    runner = await run({
      pgPool: pool,
      preset: {
        worker: {
          concurrentJobs: CONCURRENCY,
          logger: new Logger(() => () => undefined),
          localQueue: { size: LOCAL_QUEUE },
          completeJobBatchDelay: BATCH_MS,
          failJobBatchDelay: BATCH_MS,
          getQueueNameBatchDelay: BATCH_MS,
        },
      },
      noHandleSignals: true,
      taskList: {
        async deliver(payload) {
          const attempt = payload as Pick<Attempt, 'accountId' | 'deliveryId' | 'webhookId'>
          const requests = await loadRequests({ dialect: db.dialect, sql: db.read }, [attempt])
          const request = requests.get(attempt.deliveryId)
          if (!request?.webhook) return
          const { webhook, body, deliveryId: id } = request
          const key = open(webhook.id, webhook.sealedSecret).whole
          const startedAt = Date.now()
          const status = await sendSigned({ url: webhook.url, id, body, key }, agent)
          await storeSuccess(pool, { id, startedAt, status })
          delivered++
        },
      },
    })
    await pool.query(
      `select graphile_worker.add_jobs(array(
         select json_populate_record(null::graphile_worker.job_spec, json_build_object('identifier', 'deliver', 'payload',
           json_build_object('accountId', account_id, 'deliveryId', id, 'webhookId', webhook_id)))
         from deliveries where next_attempt_at is not null))`,
    )
  },
  progress: (): { count: number; at: number } => ({ count: delivered, at: sharedNowMs() }),
  stop: (): Promise<void> => runner.stop(),
}

export type GraphileWorker = typeof calls
serveCalls(calls)
