/** The sessions of workers in PostgreSQL: when a session ends, another worker takes over at once.
 *  When only its connection is cut, no attempt is repeated. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { transaction } from '../../records/database/transaction.ts'
import { pauseDeliveries, unpauseDeliveries } from '../../records/delivery-pause.ts'
import { type Cluster, NODE_SETTINGS, type Node, newNode, openCluster } from '../chaos/cluster.ts'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { create } from './load.ts'
import { startTcpProxy } from './proxy.ts'

/** Well below the expiry of a lease, which takes 10 to 17 s. The machine may be busy. */
const SOON_MS = 8_000
const RESPONSE_MS = 5_000
/** PostgreSQL ends a transaction that waits this long for its worker. */
const MAX_WAIT_MS = 10_000
const ENDING_MS = 2_000

async function createParticipant({ token }: Cluster, { url }: Node): Promise<void> {
  const body = { full_name: 'Ada Lovelace' }
  expect((await create(url, '/participants', body, { token })).status).toBe(201)
}

const listSessions = ({ db }: Cluster): Promise<string[]> =>
  db.read('worker_sessions').orderBy('id').pluck('id')

const areAllDelivered = async ({ db }: Cluster): Promise<boolean> =>
  (await db.read('deliveries').whereNot({ state: 'delivered' })).length === 0

test.skipIf(inject('database') !== 'postgres')(
  'a worker is killed: another one leads and repeats its attempt at once',
  async () => {
    await using cluster = await openCluster({ kind: 'postgres' })
    await using receiver = await startReceiver({ answers: ['hang', 204] })
    await cluster.addWebhook(receiver.url, ['participant.created'])
    const api = await cluster.addNode('api', 'api')
    const killed = await cluster.addNode('killed', 'worker')
    await createParticipant(cluster, api)
    await receiver.received(1, 20_000)
    await cluster.addNode('live', 'worker')
    const killedAt = Date.now()
    await killed.kill()
    await createParticipant(cluster, api)
    await receiver.received(3, SOON_MS)
    console.log(`Another worker took over within ${Date.now() - killedAt} ms`)
    const [first, ...others] = receiver.requests.map(({ headers }) => headers['webhook-id'])
    expect(others.filter((id) => id === first)).toHaveLength(1)
    await until('all is delivered', () => areAllDelivered(cluster))
  },
  120_000,
)

test.skipIf(inject('database') !== 'postgres')(
  'the session of a worker is cut: the worker keeps its attempt, and leads with another session',
  async () => {
    await using cluster = await openCluster({ kind: 'postgres' })
    await using receiver = await startReceiver({ answers: [{ afterMs: RESPONSE_MS }] })
    await cluster.addWebhook(receiver.url, ['participant.created'])
    const node = await cluster.addNode('api', 'api')
    await cluster.addNode('worker', 'worker')
    await createParticipant(cluster, node)
    await receiver.received(1, 20_000)
    const [cutSession] = await listSessions(cluster)
    expect(cutSession).toBeDefined()
    const cutAt = Date.now()
    await cluster.db.write.raw(
      "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted",
    )
    await until('the worker has another session', async () => {
      const sessions = await listSessions(cluster)
      return sessions.length === 1 && sessions[0] !== cutSession
    })
    console.log(`The worker had another session after ${Date.now() - cutAt} ms`)
    await createParticipant(cluster, node)
    await receiver.received(2, SOON_MS)
    await until('all is delivered', () => areAllDelivered(cluster), 20_000)
    // Longer than it takes to release the attempts of a session that has ended.
    await delay(1_500)
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(2)
    expect(receiver.requests).toHaveLength(2)
  },
  120_000,
)

test.skipIf(inject('database') !== 'postgres')(
  'a worker freezes in the transaction of a lease: PostgreSQL ends the transaction, and another worker makes the attempt',
  async () => {
    await using cluster = await openCluster({ kind: 'postgres' })
    await using receiver = await startReceiver()
    const { db } = cluster
    await cluster.addWebhook(receiver.url, ['participant.created'])
    const api = await cluster.addNode('api', 'api')
    const frozen = await cluster.addNode('frozen', 'worker')
    await pauseDeliveries(db, new Date())
    await createParticipant(cluster, api)
    await until('the attempt is queued', () =>
      db.read('pgboss.job').where({ name: 'deliveries' }).first(),
    )
    await transaction(db, async ({ sql }) => {
      await sql.raw('lock table pgboss.job in exclusive mode')
      await unpauseDeliveries(db, new Date())
      await until('the session of the worker waits for the lock', async () => {
        const sessions = db.read('pg_locks').where({ locktype: 'advisory', granted: true })
        const waiting = db.read('pg_stat_activity').where({ wait_event_type: 'Lock' })
        return waiting.whereIn('pid', sessions.select('pid')).first()
      })
      frozen.freeze()
    })
    const frozenAt = Date.now()
    await cluster.addNode('live', 'worker')
    await receiver.received(1, MAX_WAIT_MS + SOON_MS)
    console.log(`Another worker made the attempt after ${Date.now() - frozenAt} ms`)
    frozen.thaw()
    await until('all is delivered', () => areAllDelivered(cluster))
    expect(receiver.requests).toHaveLength(1)
    expect(await frozen.stop()).toBe(0)
  },
  120_000,
)

test.skipIf(inject('database') !== 'postgres')(
  'PostgreSQL ends sessions in the message that opens them: the worker goes on',
  async () => {
    await using cluster = await openCluster({ kind: 'postgres' })
    await using receiver = await startReceiver({ answers: [204] })
    await cluster.addWebhook(receiver.url, ['participant.created'])
    const [{ name }] = (await cluster.db.read.raw('select current_database() as name')).rows
    await using proxy = await startTcpProxy(cluster.postgres?.url(name) ?? '', 0)
    const node = newNode('node', 'all', {
      environment: { ...NODE_SETTINGS, DATABASE_URL: proxy.url },
      logFile: `${cluster.directory}/node.log`,
    })
    cluster.nodes.push(node)
    await node.start()
    proxy.endOpening(true)
    proxy.cut()
    await delay(ENDING_MS)
    proxy.endOpening(false)
    const accepted = (): Promise<boolean> =>
      createParticipant(cluster, node).then(
        () => true,
        () => false,
      )
    await until('the node accepts a change', accepted, SOON_MS)
    await receiver.received(1, SOON_MS)
    expect(await node.stop()).toBe(0)
  },
  60_000,
)
