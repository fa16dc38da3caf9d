/** Dredd sends a request for each documented status of each operation. On SQLite, `muster contract`
 *  without --url does (contract.test.ts). */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { statesOf } from '../../cli/contract-service.ts'
import { transactionCount } from '../../scripts/contract/dredd/dredd.ts'
import { runDreddSuite } from '../../scripts/contract/dredd/dredd-suite.ts'
import type { Servers } from '../../scripts/contract/dredd/provoke-status.ts'
import { readContract } from '../../scripts/model/yaml.ts'
import { type AppOptions, operationIds, startApp, type TestApp } from '../helpers.ts'
import { TEST_TIMEOUT_MS } from './contract-target.ts'

const running: TestApp[] = []
let servers: Servers
const onPostgres = inject('database') === 'postgres'

async function startRunning(options?: AppOptions): Promise<TestApp> {
  const app = await startApp(options)
  running.push(app)
  return app
}

beforeAll(async () => {
  if (!onPostgres) return
  const app = await startRunning()
  // Responds with 429.
  const limited = await startRunning({
    database: app.database,
    environment: { RATE_LIMIT_PER_MINUTE: '1' },
  })
  // Responds with 500.
  const broken = await startRunning()
  const { key: brokenKey } = await broken.newAccount()
  await broken.db.write.raw('alter table api_keys rename to lost_keys')
  // Responds with 503.
  const down = await startRunning()
  await down.db.close()
  servers = { app, limited, broken, brokenKey, down, states: statesOf(app) }
})

// In reverse order: `limited` uses the database of `app`.
afterAll(async () => {
  for (const server of running.toReversed()) await server[Symbol.asyncDispose]()
})

test.runIf(onPostgres)(
  'Dredd: every documented status of every operation, with bodies that match their schemas',
  async () => {
    const contract = await readContract(fileURLToPath(new URL('../..', import.meta.url)))
    const { passed, failures } = await runDreddSuite(contract, servers, operationIds)
    expect(failures).toEqual([])
    expect(passed.length).toBe(transactionCount(contract))
  },
  TEST_TIMEOUT_MS,
)
