/** The CPU time of creates in batches, compared with single creates. */
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { startCounters } from './counters.ts'
import { publish, publishHeaders } from './publish.ts'
import { comparison, type Result, type Round } from './result.ts'
import { startService } from './service.ts'
import { type Bench, newAccount, openDatabases, STATISTICS, withRecords } from './set-up.ts'

const ROUNDS = 3
const BATCH_SIZE = 100
const CLIENTS = 8
/** The service writes its request log within this time. */
const STORE_MS = 2_000

export async function batches({ database, quick, progress }: Bench): Promise<Result[]> {
  await using databases = await openDatabases([database], STATISTICS)
  const environment = await databases.newEnvironment(database)
  const { token } = await withRecords(environment, (trx) => newAccount(trx))
  await using service = await startService(environment)
  await using counters = await startCounters(service.pid, environment.DATABASE_URL)
  const url = `http://127.0.0.1:${service.port}/public/v1/participants`
  const cpuMsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const before = await counters.read()
    await work()
    await delay(STORE_MS)
    const after = await counters.read()
    return after.serviceMs + after.postgresMs - before.serviceMs - before.postgresMs
  }
  const count = quick ? 500 : 5_000
  const rounds: Round[] = []
  // The first round warms up.
  for (let round = 0; round <= (quick ? 1 : ROUNDS); round++) {
    progress(round === 0 ? 'warming up' : `round ${round}`)
    const reference = await cpuMsOf(() => publish({ url, token, count, clients: CLIENTS }))
    const muster = await cpuMsOf(() => sendBatches(`${url}/batch`, token, count / BATCH_SIZE))
    if (round === 0) await counters.analyze()
    else rounds.push({ muster: muster / (count / 1_000), reference: reference / (count / 1_000) })
  }
  return [
    comparison(
      { what: 'CPU of 1,000 creates in batches of 100', unit: 'ms', goal: { atMost: 0.35 } },
      'ratio',
      'single creates',
      rounds,
    ),
  ]
}

async function sendBatches(url: string, token: string, count: number): Promise<void> {
  const agent = new Agent({ connections: CLIENTS })
  const items = Array.from({ length: BATCH_SIZE }, (_, index) => ({
    action: 'create',
    data: { full_name: `Participant ${index}` },
  }))
  let left = count
  const runClient = async (): Promise<void> => {
    while (left-- > 0) {
      const { statusCode, body } = await request(url, {
        dispatcher: agent,
        method: 'POST',
        headers: { ...publishHeaders(token), 'content-type': 'application/json' },
        body: JSON.stringify({ items }),
      })
      const text = await body.text()
      if (statusCode !== 200 || text.includes('"message"')) throw new Error(`${statusCode} ${text}`)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, runClient))
  await agent.close()
}
