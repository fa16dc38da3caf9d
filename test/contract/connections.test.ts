/** The settings of the connections to PostgreSQL. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { describe, expect, inject, test } from 'vitest'
import { databaseUrlOf, startApp, until } from '../helpers.ts'
import { connectTo } from './postgres-client.ts'

const onPostgres = describe.skipIf(inject('database') !== 'postgres')
/** Linux alone lists the connections of a process in /proc. */
const onLinux = test.skipIf(process.platform !== 'linux')

/** The state of an open connection in /proc/net/tcp. */
const OPEN = '01'

/** The columns of /proc/net/tcp for the connections to PostgreSQL, of all processes. */
function listConnections(): { state: string; timer: string; socket: string }[] {
  const { port } = new URL(inject('postgresUrl'))
  return readFileSync('/proc/self/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , remote]) => Number.parseInt(remote?.split(':')[1] ?? '', 16) === Number(port))
    .map(([, , , state = '', , timer = '', , , , inode]) => ({
      state,
      timer,
      socket: `socket:[${inode}]`,
    }))
}

/** The number of open connections of this process to PostgreSQL. PostgreSQL would also count a
 *  connection that the pool has replaced already, until its backend has ended. */
function countConnections(): number {
  const targets = new Set(readdirSync('/proc/self/fd').map(findTarget))
  return listConnections().filter(({ state, socket }) => state === OPEN && targets.has(socket))
    .length
}

/** What a file descriptor of this process refers to. Undefined: it was closed after the folder was
 *  listed, as the descriptor of the folder itself always is. */
function findTarget(descriptor: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return undefined
  }
}

/** When TCP will probe each of the connections, in ms from now. 02 is the timer of keep-alive,
 *  which the kernel shows in hundredths of a second. */
function keepAliveTimersMs(): number[] {
  return listConnections()
    .filter(({ timer }) => timer.startsWith('02:'))
    .map(({ timer }) => Number.parseInt(timer.split(':')[1] ?? '', 16) * 10)
}

onPostgres('connections to PostgreSQL', () => {
  onLinux('a worker has at most DATABASE_POOL_SIZE + QUEUE_POOL_SIZE + 2', async () => {
    const environment = { DATABASE_POOL_SIZE: '3', QUEUE_POOL_SIZE: '2' }
    await using app = await startApp({ role: 'all', environment })
    const client = await app.newClient()
    let most = 0
    const timer = setInterval(() => {
      most = Math.max(most, countConnections())
    }, 1)
    const requests = Array.from({ length: 60 }, (_, number) =>
      client.post('/participants', { full_name: `Ada ${number}` }),
    )
    const statuses = (await Promise.all(requests)).map(({ status }) => status)
    clearInterval(timer)
    expect(new Set(statuses)).toEqual(new Set([201]))
    // Two are outside the pools: LISTEN and the session. The pool of the queue need not be full.
    expect(most).toBeGreaterThanOrEqual(3 + 1 + 2)
    expect(most).toBeLessThanOrEqual(3 + 2 + 2)
    const { text } = await app.call('GET', '/metrics')
    expect(text).toContain('muster_database_pool_max{pool="read"} 1')
    expect(text).toContain('muster_database_pool_max{pool="write"} 2')
  })

  test('a change waits for a lock for DATABASE_LOCK_TIMEOUT_MS, then gets a 503', async () => {
    await using app = await startApp({ environment: { DATABASE_LOCK_TIMEOUT_MS: '200' } })
    await using postgres = await connectTo(databaseUrlOf(app.database))
    const client = await app.newClient()
    const { body } = await client.post('/participants', { full_name: 'Ada' })
    await postgres.query('begin')
    await postgres.query('select 1 from participants where id = $1 for update', [body.id])
    const change = () => client.patch(`/participants/${body.id}`, { full_name: 'Grace' })
    const start = performance.now()
    expect((await change()).status).toBe(503)
    expect(performance.now() - start).toBeLessThan(5_000)
    await postgres.query('rollback')
    expect((await change()).status).toBe(200)
  })

  test('a read runs for DATABASE_STATEMENT_TIMEOUT_MS, then gets a 503', async () => {
    await using app = await startApp({ environment: { DATABASE_STATEMENT_TIMEOUT_MS: '300' } })
    await using postgres = await connectTo(databaseUrlOf(app.database))
    const client = await app.newClient()
    await postgres.query('begin')
    await postgres.query('lock table participants in access exclusive mode')
    const start = performance.now()
    expect((await client.get('/participants')).status).toBe(503)
    expect(performance.now() - start).toBeLessThan(5_000)
    await postgres.query('rollback')
    await until('reads succeed', async () => (await client.get('/participants')).status === 200)
  })

  onLinux('TCP probes a silent connection after DATABASE_KEEP_ALIVE_MS', async () => {
    const environment = { DATABASE_KEEP_ALIVE_MS: '3600000' }
    await using app = await startApp({ role: 'all', environment })
    await app.newAccount()
    const timers = keepAliveTimersMs().filter((timer) => timer > 3_000_000 && timer <= 3_600_000)
    // Those of the records, the queue and LISTEN.
    expect(timers.length).toBeGreaterThanOrEqual(3)
  })
})
