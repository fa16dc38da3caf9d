/** Two nodes, of which one leads the deliveries and is killed with SIGKILL: how long the receiver
 *  gets no request while the other node commits changes at a fixed rate. */
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../helpers.ts'
import { freePort } from '../postgres.ts'
import { startReceiver } from '../receiver.ts'
import { newSender } from './deploys.ts'
import { figure, median, type Result } from './result.ts'
import { type Service, startService } from './service.ts'
import { addWebhooks, type Bench, newAccount, withRecords } from './set-up.ts'

const KILLS = 20
const CHANGES_PER_SECOND = 25
/** The time before and after each kill. */
const REST_MS = 3_000

export async function takeovers(bench: Bench): Promise<Result[]> {
  // In embedded mode there is one node.
  if (bench.database !== 'postgres') return []
  await using receiver = await startReceiver({ validate: false })
  const environment = { ...(await bench.newEnvironment()), DRAIN_MS: '0' }
  const token = await withRecords(environment, async (trx, config) => {
    const { scope, token } = await newAccount(trx)
    await addWebhooks(scope, [receiver.url], config)
    return token
  })
  const longestSilenceSince = (since: number): number => {
    const times = receiver.requests.map(({ receivedAt }) => receivedAt)
    const gaps = times.map((at, index) => (at > since ? at - (times[index - 1] ?? since) : 0))
    return Math.max(...gaps)
  }
  const silences: number[] = []
  let leader: Service = await startService(environment)
  let standby: Service | undefined
  try {
    for (let kill = 1; kill <= (bench.quick ? 3 : KILLS); kill++) {
      bench.progress(`kill ${kill}`)
      const port = await freePort()
      standby = await startService(environment, { port })
      const url = `http://127.0.0.1:${port}/public/v1/participants`
      const send = newSender(url, token, CHANGES_PER_SECOND)
      const from = receiver.requests.length
      await send.during(
        (async () => {
          await until('requests arrive', () => receiver.requests.length > from)
          await delay(REST_MS)
          const killedAt = Date.now()
          process.kill(leader.pid, 'SIGKILL')
          await delay(REST_MS)
          silences.push(longestSilenceSince(killedAt))
        })(),
      )
      await send.close()
      await leader[Symbol.asyncDispose]()
      leader = standby
      standby = undefined
    }
  } finally {
    await leader[Symbol.asyncDispose]()
    await standby?.[Symbol.asyncDispose]()
  }
  const what = 'silence at the receiver after kill -9 of the leader'
  return [
    figure({ what: `${what}, median`, unit: 'ms' }, median(silences)),
    figure({ what: `${what}, longest`, unit: 'ms', goal: { atMost: 500 } }, Math.max(...silences)),
  ]
}
