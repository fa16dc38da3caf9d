/** Leases: they expire after their process ends, are renewed for a slow endpoint, and cannot be
 *  used by a process that has lost them. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { type Cluster, type Node, openCluster } from '../chaos/cluster.ts'
import { until } from '../helpers.ts'
import {
  type ReceivedRequest,
  type Receiver,
  type ReceiverOptions,
  startReceiver,
} from '../receiver.ts'
import { create } from './load.ts'

const database = inject('database')
/** Long enough for a slow attempt on a busy machine, and short enough for a frozen attempt to time
 *  out while its worker stops. */
const TIMEOUT_MS = 20_000
const ENVIRONMENT = {
  WEBHOOK_RETRY_DELAYS: '1,1,1,1,1,1,1,1,1',
  WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
}
/** By default, an attempt may take 15 s. */
const ALMOST_TOO_LATE_MS = 14_900
/** The pause after each of the events for the slow endpoint. */
const SPREAD_MS = [2_500, 2_500, 0]
/** A lease lasts 10 s and is checked every 5 s. The machine may be busy. */
const ORPHAN_WITHIN_MS = 40_000

interface Event {
  /** The type of the record whose creation is the event. */
  type: 'participant' | 'task' | 'job'
  body: object
}

const PARTICIPANT: Event = { type: 'participant', body: { full_name: 'Ada Lovelace' } }
const TASK: Event = { type: 'task', body: { title: 'Call back' } }
const JOB: Event = { type: 'job', body: { title: 'Interpreter' } }

/** Creates the record, which causes the event. */
const post = ({ token }: Cluster, { url }: Node, { type, body }: Event): Promise<Response> =>
  create(url, `/${type}s`, body, { token })

/** A receiver for the events of one resource. */
async function newReceiver(
  cluster: Cluster,
  { type }: Event,
  answers: ReceiverOptions['answers'],
): Promise<Receiver> {
  const receiver = await startReceiver({ answers })
  await cluster.addWebhook(receiver.url, [`${type}.created`])
  return receiver
}

/** A stored delivery, with the outcomes of its attempts. */
interface Recorded {
  state: string
  attempts: number
  outcomes: string[]
}

const ONCE: Recorded = { state: 'delivered', attempts: 1, outcomes: ['success'] }

/** Waits until all deliveries to a receiver have ended. Returns them with their attempts. */
async function waitForEnd({ db }: Cluster, receiver: Receiver): Promise<Recorded[]> {
  const deliveries = (): Promise<{ id: string; state: string; attempts: number }[]> =>
    db
      .read('deliveries')
      .join('webhooks', 'webhooks.id', 'deliveries.webhook_id')
      .where('url', receiver.url)
      .orderBy('deliveries.id')
      .select('deliveries.id', 'deliveries.state', 'deliveries.attempts')
  const isEnded = ({ state }: { state: string }): boolean =>
    state === 'delivered' || state === 'failed'
  await until('all deliveries have ended', async () => (await deliveries()).every(isEnded), 40_000)
  return Promise.all(
    (await deliveries()).map(async ({ id, state, attempts }) => {
      const outcomes = await db
        .read('attempts')
        .where('delivery_id', id)
        .orderBy('number')
        .pluck('outcome')
      return { state, attempts, outcomes }
    }),
  )
}

const deliveryId = (request: ReceivedRequest | undefined): unknown => request?.headers['webhook-id']

test.skipIf(database !== 'postgres')(
  'several workers: attempts of killed and frozen workers are repeated, those of live ones are not',
  async () => {
    await using cluster = await openCluster({ kind: 'postgres', environment: ENVIRONMENT })
    const api = await cluster.addNode('api', 'api')
    await using ofFrozen = await newReceiver(cluster, PARTICIPANT, ['hang', 500, 204])
    await using alsoOfFrozen = await newReceiver(cluster, PARTICIPANT, ['hang', { afterMs: 8_000 }])
    await using ofKilled = await newReceiver(cluster, TASK, ['hang', 204])
    await using ofLive = await newReceiver(cluster, JOB, [{ afterMs: ALMOST_TOO_LATE_MS }])

    // One worker at a time, so that the owner of each lease is known.
    const frozen = await cluster.addNode('frozen', 'worker')
    await post(cluster, api, PARTICIPANT)
    await ofFrozen.received(1, 20_000)
    await alsoOfFrozen.received(1, 20_000)
    frozen.freeze()
    const killed = await cluster.addNode('killed', 'worker')
    await post(cluster, api, TASK)
    await ofKilled.received(1, 20_000)
    await killed.kill()
    const killedAt = Date.now()
    const live = await cluster.addNode('live', 'worker')
    const idle = await cluster.addNode('idle', 'worker')
    // The other live worker would repeat these attempts if their leases expired. Workers look for
    // expired leases every few seconds.
    for (const restMs of SPREAD_MS) {
      await post(cluster, api, JOB)
      await delay(restMs)
    }

    const [first, second] = await ofKilled.received(2, ORPHAN_WITHIN_MS)
    console.log(`The attempt of a killed worker was repeated after ${Date.now() - killedAt} ms`)
    expect([deliveryId(second), second?.body]).toEqual([deliveryId(first), first?.body])
    await ofFrozen.received(3, ORPHAN_WITHIN_MS)
    await waitForEnd(cluster, ofFrozen)

    // Both attempts of the frozen worker time out before it stops. Another worker has completed one
    // of them and has the other one in flight.
    frozen.thaw()
    expect(await frozen.stop()).toBe(0)
    expect(await waitForEnd(cluster, ofFrozen)).toEqual([
      { state: 'delivered', attempts: 2, outcomes: ['http_error', 'success'] },
    ])
    expect(await waitForEnd(cluster, alsoOfFrozen)).toEqual([ONCE])
    expect(await waitForEnd(cluster, ofKilled)).toEqual([ONCE])
    expect(await waitForEnd(cluster, ofLive)).toEqual(SPREAD_MS.map(() => ONCE))
    const counts = [ofFrozen, alsoOfFrozen, ofKilled, ofLive].map(({ requests }) => requests.length)
    expect(counts).toEqual([3, 2, 2, SPREAD_MS.length])
    expect(await Promise.all([live.stop(), idle.stop()])).toEqual([0, 0])
  },
  150_000,
)

test.skipIf(database !== 'sqlite')(
  'embedded mode: attempts of a killed process are repeated at the next start, those of a live one are not',
  async () => {
    await using cluster = await openCluster({ kind: 'sqlite', environment: ENVIRONMENT })
    await using ofKilled = await newReceiver(cluster, TASK, ['hang', 204])
    await using ofLive = await newReceiver(cluster, JOB, [{ afterMs: ALMOST_TOO_LATE_MS }])
    const node = await cluster.addNode('node', 'all')
    await post(cluster, node, TASK)
    await ofKilled.received(1, 20_000)
    await node.kill()
    await node.start()
    await ofKilled.received(2, ORPHAN_WITHIN_MS)
    const waitedMs = (ofKilled.requests[1]?.receivedAt ?? 0) - node.spawnedAt
    console.log(`The attempt of a killed process was repeated ${waitedMs} ms after the next start`)
    await post(cluster, node, JOB)
    expect(await waitForEnd(cluster, ofKilled)).toEqual([ONCE])
    expect(await waitForEnd(cluster, ofLive)).toEqual([ONCE])
    expect([ofKilled, ofLive].map(({ requests }) => requests.length)).toEqual([2, 1])
    expect(await node.stop()).toBe(0)
  },
  150_000,
)

test.skipIf(database !== 'postgres')(
  'PostgreSQL killed: writes get 503 with Retry-After; after its restart the same nodes deliver',
  async () => {
    await using cluster = await openCluster({ kind: 'postgres', environment: ENVIRONMENT })
    await using receiver = await newReceiver(cluster, PARTICIPANT, [204])
    const api = await cluster.addNode('api', 'api')
    const worker = await cluster.addNode('worker', 'worker')
    await post(cluster, api, PARTICIPANT)
    await receiver.received(1, 20_000)
    for (let round = 1; round <= 2; round++) {
      await cluster.postgres?.kill()
      for (const event of [PARTICIPANT, TASK]) {
        const response = await post(cluster, api, event)
        expect(response.status).toBe(503)
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      }
      await delay(1_000)
      await cluster.postgres?.restart()
      const { status } = await until(
        'the API node accepts writes',
        async () => {
          const response = await post(cluster, api, PARTICIPANT)
          return response.status !== 503 && response
        },
        30_000,
      )
      expect(status).toBe(201)
      await receiver.received(1 + round, 30_000)
    }
    expect(receiver.requests).toHaveLength(3)
    expect(await Promise.all([api.stop(), worker.stop()])).toEqual([0, 0])
  },
  150_000,
)
