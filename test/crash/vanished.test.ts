/** A node that freezes in the middle of transactions: other nodes wait for its locks, but not for
 *  long. */
import { expect, inject, test } from 'vitest'
import { type Cluster, NODE_SETTINGS, newNode, openCluster } from '../chaos/cluster.ts'
import { until } from '../helpers.ts'
import { create } from './load.ts'
import { startTcpProxy } from './proxy.ts'

/** docs/operations.md promises this time. */
const MAX_DELAY_MS = 17_000
/** A request that waits for no lock. */
const UNDELAYED_MS = 3_000

const lastUsedAt = async ({ db }: Cluster): Promise<number> =>
  Number((await db.read('api_keys').first('last_used_at')).last_used_at)

async function timed<T>(work: Promise<T>): Promise<{ result: T; ms: number }> {
  const startMs = performance.now()
  return { result: await work, ms: performance.now() - startMs }
}

test.skipIf(inject('database') !== 'postgres')(
  'a node freezes in its transactions: another node serves the same key, and its changes wait for at most 17 s',
  async () => {
    await using cluster = await openCluster({ kind: 'postgres' })
    const { token } = cluster
    const api = await cluster.addNode('api', 'api')
    const [url] = (await cluster.db.read.raw('select current_database() as name')).rows
    const databaseUrl = cluster.postgres?.url(url.name) ?? ''
    await using proxy = await startTcpProxy(databaseUrl, 0)
    const frozen = newNode('frozen', 'api', {
      environment: { ...NODE_SETTINGS, DATABASE_URL: proxy.url },
      logFile: `${cluster.directory}/frozen.log`,
    })
    cluster.nodes.push(frozen)
    await frozen.start()
    const call = (node: { url: string }, method: string, path: string, body?: object) =>
      fetch(`${node.url}/public/v1${path}`, {
        method,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: body && JSON.stringify(body),
      })
    const created = await create(frozen.url, '/participants', { full_name: 'Ada' }, { token })
    const { id } = (await created.json()) as { id: string }
    const path = `/participants/${id}`
    const change = { full_name: 'Ada Lovelace' }
    await until('the request is logged', async () => (await lastUsedAt(cluster)) > 0)

    // The request log writes within a second.
    proxy.holdAt('COMMIT')
    expect((await call(frozen, 'GET', path)).status).toBe(200)
    const lost = call(frozen, 'PATCH', path, change).catch(() => undefined)
    await until('two transactions wait for COMMIT', () => proxy.heldConnections() >= 2)
    frozen.freeze()

    const frozenAt = Date.now()
    const read = await timed(call(api, 'GET', path))
    const createdAgain = await timed(
      create(api.url, '/participants', { full_name: 'Bo' }, { token }),
    )
    const changed = await timed(call(api, 'PATCH', path, change))
    await until('the key was used', async () => (await lastUsedAt(cluster)) >= frozenAt, 40_000)
    const usedMs = Date.now() - frozenAt
    const logged = async (): Promise<boolean> =>
      (await cluster.db.read('request_log').where('created_at', '>=', frozenAt)).length === 3
    await until('the requests are logged', logged, 40_000)
    const loggedMs = Date.now() - frozenAt
    console.log({
      readMs: read.ms,
      createMs: createdAgain.ms,
      changeMs: changed.ms,
      usedMs,
      loggedMs,
    })
    expect([read, createdAgain, changed].map(({ result }) => result.status)).toEqual([
      200, 201, 200,
    ])
    expect(read.ms).toBeLessThan(UNDELAYED_MS)
    expect(createdAgain.ms).toBeLessThan(UNDELAYED_MS)
    expect(Math.max(changed.ms, usedMs, loggedMs)).toBeLessThan(MAX_DELAY_MS)
    await frozen.kill()
    await lost
  },
  150_000,
)
