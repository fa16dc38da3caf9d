/** `kill -9` of the only node under load, with an immediate restart: deliveries continue at once,
 *  nothing is lost, and no request with a repeated Idempotency-Key gets a 409. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { percentile } from '../bench/result.ts'
import { type Cluster, type Node, openCluster } from '../chaos/cluster.ts'
import { until } from '../helpers.ts'
import { type Receiver, startReceiver } from '../receiver.ts'
import { readBothCounts } from '../records/record-counts.ts'
import { create } from './load.ts'

/** `KILLS=20` for a thorough run. */
const KILLS = Number(process.env.KILLS ?? 3)
const CHANGE_INTERVAL_MS = 10
/** At 100 changes a second, ten attempts are in flight when the node dies. */
const RESPONSE_MS = 100
/** The shortest and the longest time from the first request after a start to the next kill. */
const REST_MS = [2_500, 3_500]
const RETRY_MS = 20
/** From the kill to the next request, beyond the time that the start takes. */
const MAX_SILENCE_MS = 1_500
/** From an event to the first request of its delivery. */
const MAX_LATENESS_MS = 3_000
/** If a start takes longer, other tests slow the service down, and the limits grow in proportion.
 *  On a machine without other tests a start takes 0.7 s. */
const QUICK_START_MS = 1_000
/** The most concurrent requests. A slow service gets fewer changes, so that its backlog does not
 *  grow. */
const MAX_REQUESTS = 100

interface Load {
  /** Sends no more changes, and resolves when each has succeeded. */
  stop(): Promise<void>
  /** The IDs of the created records. */
  created: string[]
  /** Responses other than 201 and 503. */
  failures: string[]
}

/** Creates records at the rate of `CHANGE_INTERVAL_MS`, each with an Idempotency-Key. Repeats a
 *  request until it succeeds. */
function startLoad({ token }: Cluster, node: Node): Load {
  const created: string[] = []
  const failures: string[] = []
  const running = new Set<Promise<void>>()
  const createUntilSuccess = async (): Promise<void> => {
    const key = randomUUID()
    for (;;) {
      const participant = { full_name: 'Ada Lovelace' }
      const response = await create(node.url, '/participants', participant, { token, key }).catch(
        () => undefined,
      )
      const body = (await response?.json().catch(() => undefined)) as { id: string } | undefined
      if (response?.status === 201 && body) return void created.push(body.id)
      if (response && body && response.status !== 503) failures.push(`${response.status}`)
      await delay(RETRY_MS)
    }
  }
  const timer = setInterval(() => {
    if (running.size >= MAX_REQUESTS) return
    const request = createUntilSuccess()
    running.add(request)
    request.finally(() => running.delete(request))
  }, CHANGE_INTERVAL_MS)
  return {
    created,
    failures,
    async stop() {
      clearInterval(timer)
      await Promise.all(running)
    },
  }
}

interface Kill {
  killedAt: number
  readyAt: number
  startMs: number
  /** From the kill to the next request at the receiver. */
  silenceMs: number
}

/** Kills the node and starts it again. */
async function killOnce(node: Node, { requests }: Receiver): Promise<Kill> {
  const killedAt = Date.now()
  await node.kill()
  const before = requests.length
  await node.start()
  const next = await until('the next request', () => requests[before], 30_000)
  return {
    killedAt,
    readyAt: node.readyAt,
    startMs: node.readyAt - node.spawnedAt,
    silenceMs: next.receivedAt - killedAt,
  }
}

interface DeliveryRow {
  id: string
  state: string
  attempts: number
  resource_id: string
  created_at: number
}

async function listDeliveries({ db }: Cluster): Promise<DeliveryRow[]> {
  return db
    .read('deliveries')
    .join('events', 'events.id', 'deliveries.event_id')
    .select('deliveries.id', 'state', 'attempts', 'events.resource_id', 'events.created_at')
}

/** The times of the requests of each delivery, by its ID. */
function arrivals({ requests }: Receiver): Map<string, number[]> {
  const times = new Map<string, number[]>()
  for (const { headers, receivedAt } of requests) {
    const id = String(headers['webhook-id'])
    times.set(id, [...(times.get(id) ?? []), receivedAt])
  }
  return times
}

/** Whether a kill explains each repeat: the previous request came before the node was ready again,
 *  and the repeat after the kill. */
function areRepeatsOfKills(times: number[], kills: Kill[]): boolean {
  const repeats = times.slice(1)
  return repeats.every((repeatedAt, index) => {
    const requestedAt = times[index] ?? 0
    return kills.some(({ killedAt, readyAt }) => requestedAt < readyAt && repeatedAt > killedAt)
  })
}

test(
  `${KILLS} times kill -9 under load: deliveries continue at once, and only attempts in flight are repeated`,
  async () => {
    await using cluster = await openCluster({ kind: inject('database') })
    await using receiver = await startReceiver({ answers: [{ afterMs: RESPONSE_MS }] })
    await cluster.addWebhook(receiver.url, ['participant.created'])
    const node = await cluster.addNode('node', 'all')
    const load = startLoad(cluster, node)
    const kills: Kill[] = []
    await receiver.received(100, 30_000)
    for (let kill = 0; kill < KILLS; kill++) {
      const [least = 0, most = 0] = REST_MS
      await delay(least + Math.random() * (most - least))
      kills.push(await killOnce(node, receiver))
    }
    await delay(1_000)
    await load.stop()
    const rows = await until(
      'all is delivered',
      async () => {
        const deliveries = await listDeliveries(cluster)
        return deliveries.every(({ state }) => state === 'delivered') && deliveries
      },
      60_000,
    )

    const byDelivery = arrivals(receiver)
    const lateness = rows.map(({ id, created_at }) => (byDelivery.get(id)?.[0] ?? 0) - created_at)
    const repeated = [...byDelivery.values()].filter((times) => times.length > 1)
    console.log(
      `${inject('database')}: ${rows.length} deliveries, ${repeated.length} repeated; late by a median of ` +
        `${percentile(lateness, 0.5)} ms, p95 ${percentile(lateness, 0.95)}, p99 ${percentile(lateness, 0.99)}, ` +
        `at most ${Math.max(...lateness)} ms; start and silence in ms: ` +
        kills.map(({ startMs, silenceMs }) => `${startMs}/${silenceMs}`).join(', '),
    )
    expect(load.failures).toEqual([])
    const resources = rows.map(({ resource_id }) => resource_id)
    expect(resources.toSorted()).toEqual(load.created.toSorted())
    expect(rows.filter(({ id }) => !byDelivery.has(id))).toEqual([])
    const { stored, counted } = await readBothCounts(cluster.db)
    expect(stored).toEqual(counted)
    // No attempt whose result was stored is repeated: its delivery would have a second attempt.
    expect(rows.filter(({ attempts }) => attempts !== 1)).toEqual([])
    expect(repeated.filter((times) => !areRepeatsOfKills(times, kills))).toEqual([])
    const slowness = Math.max(1, ...kills.map(({ startMs }) => startMs / QUICK_START_MS))
    const beyondStart = kills.map(({ startMs, silenceMs }) => silenceMs - startMs)
    expect(Math.max(...beyondStart)).toBeLessThan(slowness * MAX_SILENCE_MS)
    expect(Math.max(...lateness)).toBeLessThan(slowness * MAX_LATENESS_MS)
  },
  (60 + 20 * KILLS) * 1_000,
)
