/** Rolling restarts, and starts while PostgreSQL is away. Real processes on PostgreSQL. */
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { type Muster, newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { newDatabase, until } from '../helpers.ts'
import { freePort } from '../postgres.ts'
import { startLoad } from './load.ts'
import { startLoadBalancer, startTcpProxy } from './proxy.ts'

/** `ROLLING_RESTARTS=20` for a thorough run. */
const RESTARTS = Number(process.env.ROLLING_RESTARTS ?? 3)
/** How long PostgreSQL is away. */
const AWAY_MS = 1_500
/** How long connections are cut again and again, counted from the same moment. */
const CUTS_MS = 6_000
const CUT_EVERY_MS = 400
const SETTINGS = { RATE_LIMIT_PER_MINUTE: '1000000', DRAIN_MS: '1000' }

describe.skipIf(inject('database') !== 'postgres')('deploys', () => {
  test(
    `${RESTARTS} rolling restarts of two nodes under load: no request fails`,
    async () => {
      await using database = await newDatabase()
      await using muster = await newMuster()
      const ports = [await freePort(), await freePort()]
      const urls = ports.map((port) => `http://127.0.0.1:${port}`)
      const startNode = (port: number) =>
        startServing(muster, {
          environment: { ...database.environment, ...SETTINGS, PORT: String(port) },
        })
      const first = await startNode(ports[0] as number)
      const nodes = [first, await startNode(ports[1] as number)]
      await using balancer = await startLoadBalancer(urls)
      const waitForNode = (url: string) => until(`${url} is ready`, () => balancer.isReady(url))
      for (const url of urls) await waitForNode(url)
      const load = startLoad(balancer.url, first.ready.first_account?.token ?? '')
      for (let restart = 0; restart < RESTARTS; restart++)
        for (const [index, port] of ports.entries()) {
          nodes[index]?.process.kill('SIGTERM')
          expect(await nodes[index]?.ended).toMatchObject({ status: 0 })
          nodes[index] = await startNode(port)
          await waitForNode(urls[index] as string)
        }
      const successes = await load.stop()
      expect(load.failures).toEqual([])
      expect(successes).toBeGreaterThan(100 * RESTARTS)
    },
    (60 + 60 * RESTARTS) * 1_000,
  )

  test('a start waits for a PostgreSQL that is away and then cuts all connections', async () => {
    await using database = await newDatabase()
    await using muster = await newMuster()
    const { environment } = database
    if (!('DATABASE_URL' in environment)) throw new Error('This test needs PostgreSQL')
    await using proxy = await startTcpProxy(environment.DATABASE_URL, AWAY_MS)
    const cuts = setInterval(proxy.cut, CUT_EVERY_MS)
    setTimeout(() => clearInterval(cuts), CUTS_MS)
    const {
      process: child,
      output,
      ended,
      ready,
    } = await startServing(muster, {
      environment: { ...environment, DATABASE_URL: proxy.url, DRAIN_MS: '0' },
    })
    expect(ready.first_account).toMatchObject({ token: expect.any(String) })
    const lines = output.stderr.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).msg)).toContainEqual(
      expect.stringMatching(/^PostgreSQL cannot be reached: .*\. Trying again for up to \d+ s\.$/),
    )
    child.kill('SIGTERM')
    expect((await ended).status).toBe(0)
  })

  test.each(['before', 'after'] as const)(
    'a start that loses PostgreSQL %s the COMMIT of the first account prints a key that works',
    async (when) => {
      await using database = await newDatabase()
      await using muster = await newMuster()
      const { environment } = database
      if (!('DATABASE_URL' in environment)) throw new Error('This test needs PostgreSQL')
      await using proxy = await startTcpProxy(environment.DATABASE_URL, 0)
      proxy.cutCommitOf('owner@muster.local', when)
      const serving = await startServing(muster, {
        environment: { ...environment, DATABASE_URL: proxy.url, DRAIN_MS: '0' },
      })
      expect(serving.output.stderr).toContain('PostgreSQL cannot be reached')
      const { url, first_account } = serving.ready
      const authorization = `Bearer ${first_account?.token}`
      const me = await fetch(`${url}/public/v1/me`, { headers: { authorization } })
      expect(me.status).toBe(200)
      serving.process.kill('SIGTERM')
      expect((await serving.ended).status).toBe(0)
    },
  )

  test('a wrong user of DATABASE_URL is refused at once, in one sentence', async () => {
    await using database = await newDatabase()
    await using muster = await newMuster()
    expect(await serveAsStranger(muster, database.environment)).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^PostgreSQL refuses the user or the password of DATABASE_URL: .*\. Correct DATABASE_URL\.\n$/,
      ),
    })
  })

  test('a database whose events Citus has distributed is refused', async () => {
    await using database = await newDatabase()
    await using muster = await newMuster()
    const { environment } = database
    if (!('DATABASE_URL' in environment)) throw new Error('This test needs PostgreSQL')
    const client = new pg.Client(environment.DATABASE_URL)
    await client.connect()
    // The list of distributed tables that Citus has in pg_catalog.
    await client.query(
      `create table events (); create table pg_dist_partition (logicalrelid regclass);
       insert into pg_dist_partition values ('events')`,
    )
    await client.end()
    expect(
      await muster.run(['serve'], { environment: { ...environment, PORT: '0' } }),
    ).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^Citus has distributed the events of this database, /),
    })
  })
})

function serveAsStranger(muster: Muster, environment: Record<string, string>) {
  const DATABASE_URL = Object.assign(new URL(environment.DATABASE_URL ?? ''), {
    username: 'stranger',
  }).href
  return muster.run(['serve'], { environment: { ...environment, DATABASE_URL, PORT: '0' } })
}
