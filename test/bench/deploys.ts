/** The response times while two nodes behind a load balancer restart one after the other, compared
 *  with those of the same nodes between the restarts. */
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { startLoadBalancer } from '../crash/proxy.ts'
import { until } from '../helpers.ts'
import { freePort } from '../postgres.ts'
import { comparison, percentile, type Result } from './result.ts'
import { type Service, startService } from './service.ts'
import { type Bench, newAccount, withRecords } from './set-up.ts'

const RESTARTS = 20
const REQUESTS_PER_SECOND = 50
const CALM_MS = 5_000

export async function deploys(bench: Bench): Promise<Result[]> {
  // In embedded mode there is one node.
  if (bench.database !== 'postgres') return []
  const environment = { ...(await bench.newEnvironment()), DRAIN_MS: '1000' }
  const { token } = await withRecords(environment, newAccount)
  const ports = [await freePort(), await freePort()]
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  const nodes: Service[] = []
  await using balancer = await startLoadBalancer(urls)
  const isReady = (url: string) => until(`${url} is ready`, () => balancer.isReady(url))
  const url = `${balancer.url}/public/v1/participants`
  const send = newSender(url, token, REQUESTS_PER_SECOND)
  try {
    for (const port of ports) nodes.push(await startService(environment, { port }))
    for (const url of urls) await isReady(url)
    await send.during(delay(CALM_MS))
    const calm: number[] = []
    const restarting: number[] = []
    for (let restart = 1; restart <= (bench.quick ? 1 : RESTARTS); restart++) {
      bench.progress(`restart ${restart}`)
      calm.push(...(await send.during(delay(CALM_MS))))
      const restartAll = async (): Promise<void> => {
        for (const [index, port] of ports.entries()) {
          await nodes[index]?.[Symbol.asyncDispose]()
          nodes[index] = await startService(environment, { port })
          await isReady(urls[index] as string)
        }
      }
      restarting.push(...(await send.during(restartAll())))
    }
    const what = `response time, p99, while nodes restart (${restarting.length} requests)`
    const p99 = { muster: percentile(restarting, 0.99), reference: percentile(calm, 0.99) }
    return [
      comparison({ what, unit: 'ms', goal: { atMost: 200 } }, 'difference', 'between restarts', [
        p99,
      ]),
    ]
  } finally {
    for (const node of nodes) await node[Symbol.asyncDispose]()
    await send.close()
  }
}

/** Creates participants at a fixed rate: a slow response delays no other request. */
export function newSender(url: string, token: string, perSecond: number) {
  const dispatcher = new Agent()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ full_name: 'Ada Lovelace' })
  const sendOne = async (): Promise<number> => {
    const sentAt = performance.now()
    const response = await request(url, { method: 'POST', headers, body, dispatcher })
    const text = await response.body.text()
    if (response.statusCode !== 201) throw new Error(`${response.statusCode} ${text}`)
    return performance.now() - sentAt
  }
  return {
    /** The response times in milliseconds. Throws when a request fails. */
    async during(work: Promise<unknown>): Promise<number[]> {
      const sent: Promise<number>[] = []
      const timer = setInterval(() => {
        const one = sendOne()
        // Thrown below, after the work.
        one.catch(() => undefined)
        sent.push(one)
      }, 1_000 / perSecond)
      await work.finally(() => clearInterval(timer))
      return Promise.all(sent)
    },
    close: () => dispatcher.destroy(),
  }
}
