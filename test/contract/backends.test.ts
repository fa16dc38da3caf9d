/** Connections to PostgreSQL that fail: each gives its place back. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { Backends } from '../../records/database/backends.ts'
import { withConnection } from '../../records/database/connection.ts'
import { DEFAULT_LIMITS } from '../../records/database/limits.ts'
import { openDatabase } from '../../records/database/open.ts'
import { connectTo } from './postgres-client.ts'

const STATEMENT_TIMEOUT_MS = 500
/** After PostgreSQL was asked to cancel the statement, and before the connection is given up. */
const LATE_MS = STATEMENT_TIMEOUT_MS + 1_500
/** The type of the message that ends a connection: see "54.7. Message Formats" in the manual of PostgreSQL. */
const TERMINATE = 'X'

/** A proxy in front of PostgreSQL, which gets from a client only what `forward` writes. */
async function startProxy(forward: (data: Buffer, server: Socket) => void) {
  const { hostname, port } = new URL(inject('postgresUrl'))
  const sockets = new Set<Socket>()
  const proxy = createServer({ allowHalfOpen: true }, (client) => {
    const server = connect(Number(port), hostname)
    client.on('data', (data) => forward(data, server))
    server.pipe(client)
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => other.destroy())
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const url = new URL(inject('postgresUrl'))
  url.port = String((proxy.address() as AddressInfo).port)
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => proxy.close(resolve))
    },
  }
}

describe.skipIf(inject('database') !== 'postgres')('connections to PostgreSQL that fail', () => {
  test('responses come late, also that to the first statement: the pool recovers', async () => {
    let lateMs = LATE_MS
    await using proxy = await startProxy((data, server) => {
      const isStatement = data.includes('select')
      void delay(isStatement ? lateMs : 0).then(() => server.write(data))
    })
    const limits = { ...DEFAULT_LIMITS, poolSize: 1 }
    const db = openDatabase(
      { databaseUrl: proxy.url, ...limits },
      { statementTimeoutMs: STATEMENT_TIMEOUT_MS },
    )
    const read = async () => (await db.read.raw('select 1 as one')).rows
    await expect(read()).rejects.toThrow('Query read timeout')
    lateMs = 0
    expect(await read()).toEqual([{ one: 1 }])
    await db.close()
  })

  test('the server hangs while a connection closes: it is given up', async () => {
    await using proxy = await startProxy((data, server) => {
      if (data.toString('latin1', 0, 1) !== TERMINATE) server.write(data)
    })
    const config = { connectionString: proxy.url }
    const { rows } = await withConnection(config, (client) => client.query('select 1 as one'))
    expect(rows).toEqual([{ one: 1 }])
  })

  test('a session of another program has the process ID of a connection that was given up: it goes on', async () => {
    const connectionString = inject('postgresUrl')
    await using other = await connectTo(`${connectionString}?application_name=other`)
    const { rows } = await other.query('select pg_backend_pid() as id')
    const backends = new Backends(1, { connectionString, application_name: 'muster' })
    await backends.enter()
    // After a failover, or a restart of PostgreSQL in a container.
    backends.lose({ processId: rows[0].id, openedAtMs: performance.now() })
    await backends.enter()
    expect((await other.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })
})
